"""telegraf's line protocol."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import explain, matching
from eeio.exchange.importing.power_logs.readings import Reading, Value, grouped, summed
from eeio.exchange.importing.power_logs.sensors import of_sensors
from eeio.exchange.importing.power_logs.series import (
    PUNCTUAL,
    Form,
    ReadLog,
    Series,
    series_of,
)
from eeio.exchange.importing.power_logs.times import time_of
from eeio_parsers.found import number
from eeio_power.delay import assumed
from eeio_power.errors import PowerError
from eeio_power.reading import Kind
from eeio_power.system_sensor.controller import complete_system

_LINE = re.compile(
    r"^(?P<name>(?:\\.|[^\\, \n])+)(?P<tags>(?:,(?:\\.|[^\\ \n])+)?) "
    r"(?P<fields>(?:\\.|\"[^\"\n]*\"|[^\\ \n\"])+) (?P<time>1\d{9}(?:\d{3}|\d{6}|\d{9})?)$",
    re.M,
)
_COMMENT = r"\s{0,40}#"


@dataclass(frozen=True)
class _Measurement:
    """A measurement of power: its field, and the tags that name a part of the domain."""

    name: str
    field: str
    domain: str
    part_tags: tuple[str, ...]

    def part(self, tags: Mapping[str, str]) -> str:
        if self.domain == "system":
            return tags.get("name", "")
        return " ".join(f"{tag} {tags[tag]}" for tag in self.part_tags if tag in tags)


_MEASUREMENTS = (
    _Measurement(
        "powerstat_package", "current_power_consumption_watts", "package", ("package_id",)
    ),
    _Measurement(
        "powerstat_package", "current_dram_power_consumption_watts", "dram", ("package_id",)
    ),
    _Measurement("nvidia_smi", "power_draw", "accelerator", ("uuid", "index")),
    _Measurement("redfish_power_powercontrol", "power_consumed_watts", "system", ("name",)),
)
_MACHINE_TAGS = ("address", "host", "server", "source")
"""Tags that name a machine or its controller: an agent may poll several."""


@dataclass
class _Powers:
    """The powers of a log."""

    sensors: list[Value] = field(default_factory=list)
    of_domain: dict[str, list[Value]] = field(default_factory=dict)
    machines: set[str] = field(default_factory=set)

    def line(self, text: str) -> bool:
        line = _LINE.match(text)
        if line is None:
            return False
        tags = dict(_pairs(line["tags"][1:]))
        time_s, _ = time_of(line["time"])
        fields = {key: number(value.rstrip("iu")) for key, value in _pairs(line["fields"])}
        watts = fields.get("value")
        is_power = tags.get("unit", "").lower() == "watts"
        if line["name"] == "ipmi_sensor" and is_power and watts is not None:
            self.sensors.append((time_s, tags.get("name", ""), watts))
            self.machines.add(_machine(tags))
        for measurement in _MEASUREMENTS:
            value = fields.get(measurement.field)
            if line["name"] == measurement.name and value is not None:
                part = measurement.part(tags)
                self.of_domain.setdefault(measurement.domain, []).append((time_s, part, value))
                self.machines.add(_machine(tags))
        return True


def _read(text: str) -> ReadLog:
    """InfluxDB's line protocol, as telegraf's plugins of power write it."""
    powers = _Powers()
    explain(text, powers.line, matching(_COMMENT))
    if len(powers.machines) > 1:
        named = ", ".join(sorted(powers.machines))
        raise PowerError(f"several machines ({named[:100]}): export one at a time")
    if not powers.machines:
        raise PowerError(
            "no measurement of known power (ipmi_sensor with unit=watts, powerstat_package, "
            "nvidia_smi, redfish_power_powercontrol): its domain is in the measurement's name"
        )
    log = ReadLog(same_machine=False)
    if powers.sensors:
        readings = grouped("telegraf ipmi", _in_order(powers.sensors))
        answers = [(reading.time_s, reading.parts) for reading in readings]
        log.series.append(of_sensors("telegraf ipmi", answers))
    log.series += [_series(domain, values) for domain, values in powers.of_domain.items()]
    return log


def _in_order(values: Sequence[Value]) -> list[Value]:
    """Agents write what they could not send before again later."""
    return sorted(values, key=itemgetter(0))


def _series(domain: str, values: Sequence[Value]) -> Series:
    values = _in_order(values)
    if domain == "system":
        rows = _of_complete_system(grouped("telegraf", values))
    else:
        rows = summed("telegraf", values)
    is_rapl = domain in ("package", "dram")
    form: Form = "mean" if is_rapl else "sample"
    delay = PUNCTUAL if is_rapl else assumed("power_w", domain)
    kind: Kind = "device-reported" if domain == "accelerator" else "measured"
    return series_of("telegraf", domain, kind, form, rows, delay)


def _machine(tags: Mapping[str, str]) -> str:
    return " ".join(tags[name] for name in _MACHINE_TAGS if name in tags)


def _of_complete_system(readings: Sequence[Reading]) -> list[tuple[float, float]]:
    """Of entries by their names, those of the complete machine: some controllers list processors
    and memory, too. Raises PowerError if that is not clear."""
    last: dict[str, float | None] = {}
    for reading in readings:
        last |= reading.parts
    complete = tuple(last)
    if len(last) > 1:
        complete = complete_system(last).sensors
    if not complete:
        raise PowerError(f"which of {', '.join(last)} is the complete machine? Export one of them")
    return [
        (reading.time_s, reading.total(complete))
        for reading in readings
        if not reading.parts.keys().isdisjoint(complete)
    ]


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in re.findall(r"(?:\\.|\"[^\"]*\"|[^\\,\"])+", text):
        key, _, value = pair.partition("=")
        yield key, value.replace("\\ ", " ").replace("\\,", ",").strip('"')


LOGS = (LogFormat("telegraf", _LINE, _read),)
