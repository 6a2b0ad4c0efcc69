"""telegraf's line protocol."""

import math
import re
from collections.abc import Iterator, Mapping

from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.sensors import of_sensors
from eeio.importing.power_logs.series import DELAYS, PUNCTUAL, Form, ReadLog, series_of
from eeio.importing.power_logs.times import time_of
from eeio_parsers.found import number
from eeio_power.delay import BMC
from eeio_power.errors import PowerError
from eeio_power.reading import Kind
from eeio_power.watt_names import complete_system

_LINE = re.compile(
    r"^(?P<name>(?:\\.|[^\\, \n])+)(?P<tags>(?:,(?:\\.|[^\\ \n])+)?) "
    r"(?P<fields>(?:\\.|\"[^\"\n]*\"|[^\\ \n\"])+) (?P<time>1\d{18})$", re.M,
)  # fmt: skip


_TELEGRAF = {
    ("powerstat_package", "current_power_consumption_watts"): "package",
    ("powerstat_package", "current_dram_power_consumption_watts"): "dram",
    ("nvidia_smi", "power_draw"): "accelerator",
    ("redfish_power_powercontrol", "power_consumed_watts"): "system",
}


def _telegraf(text: str) -> ReadLog:
    """InfluxDB's line protocol, as telegraf's plugins of power write it."""
    found = ReadLog(same_machine=False)
    sensors: dict[float, dict[str, float | None]] = {}
    of_domain: dict[str, dict[float, dict[str, float]]] = {}
    machines = set[str]()
    for line in _LINE.finditer(text):
        tags = dict(_pairs(line["tags"][1:]))
        time_s, name = time_of(line["time"])[0], line["name"]
        fields = {key: number(value.rstrip("iu")) for key, value in _pairs(line["fields"])}
        watts = tags.get("unit", "").lower() == "watts"
        if name == "ipmi_sensor" and watts and fields.get("value") is not None:
            # One answer of the controller: its sensors have the same second.
            sensors.setdefault(float(int(time_s)), {})[tags.get("name", "")] = fields["value"]
            machines.add(_machine(tags))
        for (measurement, key), domain in _TELEGRAF.items():
            value = fields.get(key)
            if name == measurement and value is not None:
                parts = [v for k, v in sorted(tags.items()) if k not in _MACHINE_TAGS]
                part = tags.get("name", "") if domain == "system" else " ".join(parts)
                of_domain.setdefault(domain, {}).setdefault(time_s, {})[part] = value
                machines.add(_machine(tags))
    if len(machines) > 1:
        named = ", ".join(sorted(machines))
        raise PowerError(f"several machines ({named[:100]}): export one at a time")
    if not sensors and not of_domain:
        raise PowerError(
            "no measurement of known power (ipmi_sensor with unit=watts, powerstat_package, "
            "nvidia_smi, redfish_power_powercontrol): its domain is in the measurement's name"
        )
    if sensors:
        found.series.append(of_sensors("telegraf ipmi", sorted(sensors.items())))
    for domain, times in of_domain.items():
        if domain == "system":
            times = _of_complete_system(times)
        count = max(map(len, times.values()))
        rows = [(t, sum(of.values()) if len(of) == count else math.nan)
                for t, of in sorted(times.items())]  # fmt: skip
        is_rapl = domain in ("package", "dram")
        form: Form = "mean" if is_rapl else "sample"
        delay = PUNCTUAL if is_rapl else DELAYS.get(domain, BMC)
        kind: Kind = "device-reported" if domain == "accelerator" else "measured"
        found.series.append(series_of("telegraf", domain, kind, form, rows, delay))
    return found


_MACHINE_TAGS = ("address", "host", "server", "source")
"""Tags that name a machine or its controller: an agent may poll several."""


def _machine(tags: Mapping[str, str]) -> str:
    return " ".join(tags[name] for name in _MACHINE_TAGS if name in tags)


def _of_complete_system(
    times: Mapping[float, Mapping[str, float]],
) -> dict[float, dict[str, float]]:
    """Of entries by their names, those of the complete machine: some controllers list processors
    and memory, too. Raises PowerError if that is not clear."""
    most = max(times.values(), key=len)
    complete = set(most)
    if len(most) > 1:
        complete = set(complete_system(most).sensors)
    if not complete:
        raise PowerError(f"which of {', '.join(most)} is the complete machine? Export one of them")
    return {
        time_s: {name: watts for name, watts in of.items() if name in complete}
        for time_s, of in times.items()
    }


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for word in re.findall(r"(?:\\.|\"[^\"]*\"|[^\\,\"])+", text):
        key, _, value = word.partition("=")
        yield key, value.replace("\\ ", " ").replace("\\,", ",").strip('"')


LOGS = (LogFormat("telegraf", _LINE, _telegraf),)
