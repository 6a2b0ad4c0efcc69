"""A table of power with its map: the spec of a live meter, `csv:FILE,map=time:NAME+power_w:NAME`.

It is read by the meter `csv` (docs/reference/meters.md), with all of its options. Without a stated
or calibrated delay it is taken to be as late as a BMC, as every log of an unknown program.
"""

from dataclasses import replace
from pathlib import Path

from eeio.exchange.importing.power_logs.one_meter import check_one_meter
from eeio.exchange.importing.power_logs.series import ReadLog, Series, of_unknown_program
from eeio_power.errors import PowerError
from eeio_power.meters import open_meters, parse_spec
from eeio_power.meters.csv import CsvMeter
from eeio_power.samples import MeterSamples, meter_info

PREFIX = "csv:"


def file_and_offset(spec: str) -> tuple[Path, str | None]:
    """The table that the spec names, and how far its clock is ahead, as written. Raises
    PowerError for a spec that cannot be read."""
    _, options = parse_spec(spec)
    return Path(options[""]), options.get("offset_s")


def read_table(spec: str) -> ReadLog:
    """Its series, Unix s by the log's clock. Raises PowerError."""
    (meter,) = open_meters((spec,))
    assert isinstance(meter, CsvMeter)
    times_s, values = meter.readings()
    if len(times_s) < 2:
        raise PowerError("one reading is too few")
    info = meter_info(meter, 1.0 / meter.native_period_s)
    (channel,) = info.channels
    if channel.quantity == "power_w":
        check_one_meter(meter.name, list(zip(times_s, values, strict=True)))
    series = Series(
        meter=meter.name,
        domain=channel.domain,
        kind=meter.kind,
        form="counter" if channel.quantity == "energy_j" else "sample",
        times_s=times_s,
        values=values,
        accuracy=channel.accuracy_relative,
        contents=channel.contents,
    )
    delay = channel.delay or of_unknown_program(series)
    resolution = channel.resolution
    if channel.quantity == "power_w":
        resolution = resolution or meter.resolution_w
    info = replace(info, channels=(replace(channel, delay=delay, resolution=resolution),))
    recorded = MeterSamples(info, times_s, (values,))
    return ReadLog([replace(series, delay=delay, recorded=recorded)], same_machine=False)
