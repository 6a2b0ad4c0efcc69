"""A machine laid out, with its programs, services and counters; and what eeio reads of it."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from eeio.machine.as_data.description import lay_out
from eeio_power.meters import Meter, close_meters, open_meters, perf
from eeio_power.reading import EnergyReading
from eeio_power.samples import MeterSamples, Samples, meter_info
from tests.machines.machines import KnownMachine, Life
from tests.simulators.http import FakeHttp

RECORD_S = 10.0
RATE_HZ = 10.0


@dataclass(frozen=True)
class Living:
    """A machine laid out, its programs on PATH, its services answering."""

    machine: KnownMachine
    root: Path
    addresses: dict[str, str]
    life: Life

    def spec(self, meter: str) -> str:
        """`redfish:http://{redfish}` with the address of the service."""
        return meter.format(**self.addresses)


@contextmanager
def alive(machine: KnownMachine, folder: Path) -> Iterator[Living]:
    """Lays the machine out below a new folder."""
    root, programs = lay_out(machine.description, folder)
    life = Life(root, machine)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, PATH=str(programs)))
        stack.enter_context(mock.patch.object(perf, "os", life))
        stack.enter_context(mock.patch.object(perf.open_meter, "__defaults__", (life.opener,)))
        addresses = {
            kind: stack.enter_context(FakeHttp(answers)).address
            for kind, answers in machine.description.services.items()
        }
        yield Living(machine, root, addresses, life)


def adds_up(living: Living, spec: str) -> dict[str, list[str]]:
    """The channels that a meter adds up, by domain."""
    meters = open_meters([living.spec(spec)], living.root)
    close_meters(meters)
    found: dict[str, list[str]] = {}
    for meter in meters:
        for channel in meter.channels:
            if channel.in_domain_total:
                found.setdefault(channel.domain, []).append(channel.name)
    return found


def rule_of(living: Living, spec: str) -> str | None:
    """The name of the rule that chose a meter's sensors; None if it has one source."""
    meters = open_meters([living.spec(spec)], living.root)
    close_meters(meters)
    texts = [channel.rule for meter in meters for channel in meter.channels if channel.rule]
    return re.split("[:;]", texts[0])[0] if texts else None


def wanted_meters(living: Living) -> list[Meter]:
    """What `auto` takes, and the meters of the table that must be named."""
    wanted = living.machine.expected.meters.items()
    named = [
        living.spec(name)
        for name, want in wanted
        if ("{" in name or name == "gpu") and not isinstance(want, str)
    ]
    return open_meters(["auto", *named], living.root)


def record(meters: list[Meter], life: Life) -> list[EnergyReading]:
    """What ten seconds give, each meter read at its own pace; no time passes here meanwhile."""
    return samples_of(meters, life).energy(0.0, RECORD_S)


def samples_of(meters: list[Meter], life: Life) -> Samples:
    """The readings of those ten seconds."""
    infos = [meter_info(meter, RATE_HZ) for meter in meters]
    rows: list[list[tuple[float, ...]]] = [[] for _ in meters]
    times: list[list[float]] = [[] for _ in meters]
    for tick in range(round(RECORD_S * RATE_HZ) + 1):
        now_s = tick / RATE_HZ
        life.at(now_s)
        for k, (meter, info) in enumerate(zip(meters, infos, strict=True)):
            if not times[k] or now_s - times[k][-1] >= info.period_s - 1e-9:
                times[k].append(now_s)
                values = meter.read()
                rows[k].append(tuple(math.nan if v is None else v for v in values))
    return Samples(
        tuple(
            MeterSamples(info.as_read, of_meter, tuple(zip(*values, strict=True)))
            for info, of_meter, values in zip(infos, times, rows, strict=True)
        )
    )
