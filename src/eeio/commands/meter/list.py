"""`eeio meter list`: available meters, and the requirements of others."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from eeio.commands.doctor import replay_option
from eeio.commands.output_file import format_option
from eeio.errors import EXIT_DONE, RejectedError
from eeio.machine.as_data.readings import first_and_last
from eeio.machine.as_data.replay import Replay, replayed
from eeio.options import Command, option
from eeio.record.energy_reading import MARKS
from eeio.units.number_text import number
from eeio_power import calibration
from eeio_power.calibration import Calibration
from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    LoggedMeter,
    Meter,
    about,
    close_meters,
    discover,
    open_meters,
    parse_spec,
)
from eeio_power.now import changes_every_s, power_now

_LIST_SCHEMA = 2
_PROBE_SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """`eeio meter list`."""

    format: str = format_option()
    meter: tuple[str, ...] = option(
        "--meter",
        value="SPEC",
        help="probe this meter: channels, readings, domain totals; repeatable",
        repeat=True,
    )
    replay: Path | None = replay_option()


def show_list(request: ListRequest) -> int:
    if request.meter:
        if request.replay is not None:
            raise RejectedError(
                "--meter opens a meter of this machine, and --replay is another one"
            )
        return _probe(request.meter, request.format == "json")
    as_json = request.format == "json"
    if request.replay is None:
        if as_json:
            return _print_json(discover(), None)
        return _print_text(discover(), calibration.stored(), calibration.stored_delays())
    with replayed(request.replay) as replay:
        listed = [
            replace(
                finding,
                reason=finding.reason and replay.named(finding.reason),
                remedy=finding.remedy and replay.named(finding.remedy),
            )
            for finding in discover(replay.root)
        ]
        if as_json:
            return _print_json(listed, replay)
        return _print_text(listed, (), {})


def _print_json(findings: Sequence[Detected], replay: Replay | None) -> int:
    """As JSON, with the power of each available meter now."""
    now = _power_now([f.spec for f in findings if f.available], replay)
    body = []
    for finding in findings:
        readings = now.get(finding.spec, ())
        reason = finding.reason
        if readings and all(reading["power_w"] is None for reading in readings):
            reason = reason or next((str(r["doubts"][0]) for r in readings if r["doubts"]), None)
        body.append(
            {
                "meter": finding.spec,
                **asdict(finding),
                "in_auto": finding.is_taken_by_auto,
                "readings": readings,
                "reason": reason,
                "verified_on": _verified(finding.spec),
            }
        )
    print(json.dumps({"schema_version": _LIST_SCHEMA, "meters": body}, indent=1))
    return EXIT_DONE


def _power_now(specs: Sequence[str], replay: Replay | None) -> dict[str, list[dict[str, Any]]]:
    """By spec. Counters of a replayed machine have the readings of its capture."""
    root = Path("/") if replay is None else replay.root
    meters: list[Meter] = []
    try:
        for spec in specs:
            with suppress(PowerError):  # it may be gone meanwhile
                meters += open_meters([spec], root)
        if replay is None:
            found = power_now(meters)
        else:
            recorded = {r.meter: first_and_last(r) for r in replay.description.readings}
            found = power_now(meters, 0.0, lambda meter: (), recorded)
    finally:
        close_meters(meters)
    specs_by_name = {meter.name: meter.spec for meter in meters}
    readings: dict[str, list[dict[str, Any]]] = {}
    for now in found:
        doubts = [doubt if replay is None else replay.named(doubt) for doubt in now.doubts]
        readings.setdefault(specs_by_name[now.meter], []).append(
            {
                "domain": now.domain,
                "power_w": now.power_w,
                "channels": list(now.channels),
                **asdict(now.contents),
                "doubts": doubts,
                "calibration": now.calibration,
            }
        )
    return readings


@dataclass(frozen=True)
class _Probed:
    """A meter with one reading of each channel, or `reason` why there are none."""

    meter: Meter
    values: Sequence[float | None]
    reason: str | None
    changes_every_s: float | None
    delays: Sequence[Delay | None]

    def to_json(self) -> dict[str, Any]:
        channels = zip(self.meter.channels, self.values, self.delays, strict=True)
        return {
            "spec": self.meter.spec,
            "name": self.meter.name,
            "kind": self.meter.kind,
            "period_s": self.meter.native_period_s,
            "changes_every_s": self.changes_every_s,
            "reason": self.reason,
            "verified_on": _verified(self.meter.spec),
            "channels": [_channel_json(*channel) for channel in channels],
        }

    def lines(self) -> Iterator[str]:
        """As a table shows it."""
        meter = self.meter
        yield f"{meter.spec}  {meter.kind}, every {meter.native_period_s:g} s{_label(meter.spec)}"
        yield f"{'':9}{_changes(self.changes_every_s)}; {_delays(self.delays)}"
        if self.reason:
            yield f"{'':9}{self.reason}"
        for channel, value in zip(meter.channels, self.values, strict=True):
            unit = "J"
            if channel.quantity == "power_w":
                unit = "W"
            shown = "no value"
            if value is not None:
                shown = f"{value:.6g} {unit}"
            added = "not added"
            if channel.in_domain_total:
                added = "added"
            yield f"{'':9}{channel.name}: {channel.domain}, {shown}, {added}"
            doubt = channel.doubt and f"doubtful: {channel.doubt}"
            remarks = (channel.contents.text(), channel.remark, doubt)
            yield from (f"{'':11}{text}" for text in remarks if text)


def _channel_json(channel: Channel, value: float | None, delay: Delay | None) -> dict[str, Any]:
    return {
        "name": channel.name,
        "domain": channel.domain,
        "quantity": channel.quantity,
        "value": value,
        "added": channel.in_domain_total,
        "remark": channel.remark,
        "doubt": channel.doubt,
        **asdict(channel.contents),
        **_delay_json(delay),
    }


def _probe(specs: Sequence[str], as_json: bool) -> int:
    """Prints each channel of the meters with one reading of it."""
    try:
        meters = open_meters(specs)
    except PowerError as error:
        raise RejectedError(str(error)) from error
    try:
        readings = [_read(meter) for meter in meters]
        now = []
        if not as_json:
            now = power_now([m for m in meters if not isinstance(m, LoggedMeter)])
        probed = [
            _Probed(
                meter,
                values,
                reason,
                changes_every_s(meter),
                [delayed.delay for delayed in calibration.delayed_channels(meter)],
            )
            for meter, (values, reason) in zip(meters, readings, strict=True)
        ]
    finally:
        close_meters(meters)
    if as_json:
        body = [each.to_json() for each in probed]
        print(json.dumps({"schema_version": _PROBE_SCHEMA, "probed": body}, indent=1))
        return EXIT_DONE
    for each in probed:
        print("\n".join(each.lines()))
        for power in now:
            if power.meter == each.meter.name and power.power_w is not None:
                print(f"{'':9}now: {power.domain} {number(power.power_w)} W")
    return EXIT_DONE


def _delay_json(delay: Delay | None) -> dict[str, Any]:
    """The delay of a channel; each figure null where it is unknown."""
    names = [field.name for field in fields(Delay)]
    body = dict.fromkeys(names) if delay is None else asdict(delay)
    return {{"source": "delay_source"}.get(name, name): value for name, value in body.items()}


def _changes(every_s: float | None) -> str:
    if every_s is None:
        return "the value did not change while it was watched"
    return f"a new value every {every_s:.2g} s"


def _delays(delays: Sequence[Delay | None]) -> str:
    texts = dict.fromkeys("unknown delay" if each is None else each.text for each in delays)
    return "; ".join(texts)


def _verified(spec: str) -> str | None:
    """What meters of the kind were verified on; None if they do not say it."""
    return about(parse_spec(spec)[0]).verified_on


def _label(spec: str) -> str:
    how = about(parse_spec(spec)[0]).verified
    if how is None:
        return ""
    return f", verified on {how}"


def _read(meter: Meter) -> tuple[Sequence[float | None], str | None]:
    """One value a channel, and why there are none."""
    try:
        return meter.read(), None
    except (OSError, PowerError) as error:
        return [None] * len(meter.channels), str(error)


def _print_text(
    findings: Sequence[Detected],
    calibrations: Sequence[Calibration],
    delays: Mapping[str, Delay],
) -> int:
    for finding in sorted(findings, key=lambda f: not f.available):
        state = "missing"
        if finding.available:
            state = "ok     "
        where = f"{finding.kind}, {', '.join(finding.domains) or 'no domain'}{_label(finding.spec)}"
        print(f"{state}  {finding.spec:14} {where}")
        for domain, contents in finding.contents.items():
            if text := contents.text():
                print(f"{'':9}{domain}: {text}")
        if finding.available and finding.kind not in MARKS:
            print(f"{'':9}{_delays([about(parse_spec(finding.spec)[0]).delay])}")
        if finding.rule:
            print(f"{'':9}chosen: {finding.rule}")
        if finding.doubt:
            print(f"{'':9}doubtful: {finding.doubt}")
        if finding.reason:
            print(f"{'':9}{finding.reason}")
        if finding.remedy and not finding.available:
            print(f"{'':9}-> {finding.remedy}")
    for each in calibrations:
        print(f"{each.spec} {each.domain}: {each.note(each.least_w) or each.remark}")
    for spec, delay in delays.items():
        print(f"{spec}: {delay.text}")
    return EXIT_DONE


COMMAND = Command(
    "list",
    ListRequest,
    show_list,
    help="list power meters and their requirements",
    description="Searches for meters. Does not write to serial lines or the network.",
)
