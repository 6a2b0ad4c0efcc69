"""eeio's samples file."""

from dataclasses import replace
from pathlib import Path

from eeio.exchange.importing.power_logs.series import ReadLog, series_of
from eeio.exchange.importing.power_logs.times import time_of
from eeio_power import samples as samples_file
from eeio_power.delay import assumed
from eeio_power.errors import PowerError
from eeio_power.meters import about, parse_spec
from eeio_power.samples import MeterSamples, power_over_time


def read_samples(path: Path) -> ReadLog:
    """eeio's samples file, whose header has the UTC of its monotonic clock."""
    if (begun := samples_file.begun(path)) is None:
        raise PowerError("no time of its start in the header")
    monotonic_s, utc = begun
    ahead_s = time_of(utc)[0] - monotonic_s
    found = ReadLog()
    for meter in samples_file.load(path).meters:
        recorded = _in_unix_time(meter, ahead_s)
        domains = {c.domain: c for c in recorded.info.channels if c.in_domain_total}
        powers = {power.domain: power for power in power_over_time(recorded)}
        for domain, channel in domains.items():
            power = powers.get(domain)
            rows = zip(power.times_s, power.watts, strict=True) if power else ()
            series = series_of(recorded.info.name, domain, recorded.info.kind, "mean", rows, None)
            found.series.append(replace(series, delay=channel.delay, recorded=recorded))
    return found


def _in_unix_time(meter: MeterSamples, ahead_s: float) -> MeterSamples:
    """The samples with Unix times. Channels of an older file have the delay of their meter."""
    info = meter.info
    delay = about(parse_spec(info.spec)[0]).delay
    channels = tuple(
        replace(c, delay=c.delay or delay or assumed(c.quantity, c.domain)) for c in info.channels
    )
    times_s = [time_s + ahead_s for time_s in meter.times_s]
    return replace(meter, info=replace(info, channels=channels), times_s=times_s)
