"""Machines that nobody here has: what is found on them, taken, refused, and what a record says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eeio.cli import main
from eeio.errors import EeioError, RejectedError
from eeio.machine import counters, drive, power_saving
from eeio.machine.as_data import capture
from eeio.machine.as_data.anonymous import Replacer
from eeio.machine.as_data.description import MeterReadings, lay_out
from eeio.machine.filesystem import block_device
from eeio_power.errors import PowerError
from eeio_power.meters import close_meters, contents_of, discover, open_meters
from tests.machines import accept, machines, page
from tests.machines.living import (
    Living,
    adds_up,
    alive,
    record,
    rule_of,
    samples_of,
    wanted_meters,
)
from tests.machines.machines import KnownMachine


@pytest.fixture(params=machines.names())
def living(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Living]:
    with alive(machines.load(request.param), tmp_path / "machine") as found:
        yield found


def test_each_meter_is_found_or_rejected(living: Living) -> None:
    expected = living.machine.expected.meters
    findings = {finding.spec: finding for finding in discover(living.root)}
    for name, finding in findings.items():
        wanted = expected.get(name)
        if isinstance(wanted, str):
            assert not finding.available, f"{name} was to be refused: {wanted}"
            assert re.search(wanted, finding.reason or ""), (name, finding.reason)
        elif wanted is not None:
            assert finding.available, (name, finding.reason)
            assert adds_up(living, name) == wanted
        elif finding.kind == "measured":
            assert not finding.available, f"{name} is found and not in the table: {finding}"
    for spec in expected.keys() - findings.keys():
        _check_spec(living, spec)
    for spec, rule in living.machine.expected.rules.items():
        assert rule_of(living, spec) == rule, spec


def _check_spec(living: Living, spec: str) -> None:
    """A meter that nobody looks for, such as a controller on the network."""
    wanted = living.machine.expected.meters[spec]
    if isinstance(wanted, str):
        with pytest.raises(PowerError, match=wanted):
            close_meters(open_meters([living.spec(spec)], living.root))
    else:
        assert adds_up(living, spec) == wanted


def test_a_record_reports_the_watts_of_the_table(living: Living) -> None:
    expected = living.machine.expected
    meters = wanted_meters(living)
    try:
        readings = record(meters, living.life)
    finally:
        close_meters(meters)
    reported = {(reading.meter, reading.domain) for reading in readings}
    assert reported == {(m, d) for m, domains in expected.watts.items() for d in domains}, readings
    for reading in readings:
        rule = expected.rules.get(reading.meter)
        assert rule is None or (reading.rule or "").startswith(rule), reading
        without = expected.without.get(reading.meter, {}).get(reading.domain, ())
        assert list(reading.leaves_out) == list(without), reading
        wanted = expected.watts[reading.meter][reading.domain]
        if isinstance(wanted, str):
            assert not reading.valid and re.search(wanted, "; ".join(reading.reasons)), reading
        else:
            assert reading.valid and reading.power_w == pytest.approx(wanted, rel=0.05), reading
    remarks = "; ".join(reason for reading in readings for reason in reading.reasons)
    for message in expected.says:
        assert re.search(message, remarks), remarks


def test_each_drive_reports_what_the_table_contains(living: Living) -> None:
    for name, wanted in living.machine.expected.disks.items():
        device = block_device(Path("/dev") / name, living.root)
        assert device is not None, name
        found: dict[str, str | int | None] = {
            "read_bytes": counters.read_counters(device).read_bytes,
            "lies_on": counters.lies_on(device),
            "interface": drive.drive_of(device.disk_sysfs).drive_interface,
            "elsewhere": drive.elsewhere(device),
        }
        if "state" in wanted:
            try:
                found["state"] = power_saving.state_of(device.node)
            except EeioError as error:
                found["state"] = f"refused: {error}"
        for key, value in wanted.items():
            reported = found[key]
            if isinstance(value, int):
                assert reported == value, (name, key)
                continue
            message = value.removeprefix("refused: ")
            assert isinstance(reported, str) and message in reported, (name, key, reported)
            assert reported.startswith("refused: ") == value.startswith("refused: ")


def test_a_capture_of_it_is_found_to_be_the_same(
    living: Living, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the meters read is all in a capture: a user's report becomes such a machine."""
    found = _found(living.root)
    taken = capture.take("{}", living.root, Replacer([], [])).description
    root, programs = lay_out(taken, tmp_path / "again")
    monkeypatch.setenv("PATH", str(programs))
    assert _found(root) == found


def _found(root: Path) -> dict[str, tuple[bool, str]]:
    return {
        finding.spec: (finding.available, (finding.reason or "").replace(str(root), ""))
        for finding in discover(root)
        if finding.kind == "measured"
    }


_LABEL = re.compile(r"hwmon.*_(label|oem_info)|iio.*rail_name_\d+")


@pytest.mark.parametrize("text", ["", "?"])
def test_no_label_that_is_lost_makes_another_system_of_a_part(living: Living, text: str) -> None:
    """A driver or a firmware of another version may name its sensors otherwise: then there may be
    no reading, and never one of the same contents that says other watts."""
    tree = living.machine.description.tree
    # Those of a supply tell its input from its output, which leaves its losses out.
    labels = [n for n, was in tree.items() if _LABEL.search(n) and was not in ("vin", "pin")]
    before = _watts_now(living.root)
    for name in labels:
        file = living.root / name
        was = file.read_text()
        file.write_text(text)
        for key, watts in _watts_now(living.root).items():
            assert before.get(key) == watts, (name, key)
        file.write_text(was)


def _watts_now(root: Path) -> dict[tuple[str, str, str], list[float | None]]:
    """What the sensors on boards say, by meter, domain and its contents."""
    reported: dict[tuple[str, str, str], list[float | None]] = {}
    for spec in ("hwmon", "iio"):
        try:
            (meter,) = open_meters([spec], root)
        except PowerError:
            continue
        contents = contents_of(meter.channels)
        for channel, value in zip(meter.channels, meter.read(), strict=True):
            if channel.in_domain_total:
                key = (spec, channel.domain, contents[channel.domain].text())
                reported.setdefault(key, []).append(value)
        meter.close()
    return reported


@pytest.mark.parametrize("name", machines.names())
def test_the_commands_report_what_the_table_contains(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`doctor`, `power list` and `plan`, of the description as a user would replay it."""
    machine = machines.load(name)
    replay = ["--replay", str(machines.FOLDER / name / "machine.yaml")]
    taken = {meter for meter, wanted in machine.expected.meters.items() if _is_local(meter, wanted)}

    def output_of(*arguments: str) -> str:
        assert main([*arguments, *replay]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    findings = json.loads(output_of("doctor", "--format", "json"))["findings"]
    meters = {f["name"] for f in findings if f["kind"] == "meter" and f["found"]}
    assert meters - {"modelled", "demo"} == taken
    shown = output_of("meter", "list")
    listed = {line.split()[1] for line in shown.splitlines() if line[:3] == "ok "}
    assert listed - {"modelled", "demo"} == taken
    for meter, rule in machine.expected.rules.items():
        is_found = not {"{", ","}.intersection(meter)
        assert not is_found or f"chosen: {rule}" in shown, meter
    _check_readings(machine, json.loads(output_of("power", "list", "--json")))
    if (mounted := _mounted(machine)) is not None:
        plan = output_of("plan", "eeio-suite", "--preset", "quick", "--directory", mounted)
        assert f"{mounted}: " in plan and "runs" in plan


def _check_readings(machine: KnownMachine, listed: dict[str, Any]) -> None:
    """Each available meter's watts now are those of the table; of a counter, there are none."""
    assert listed["schema_version"] == 2
    for meter in listed["meters"]:
        assert meter["meter"] == meter["spec"] and (meter["available"] or meter["readings"] == [])
        for reading in meter["readings"]:
            assert reading["channels"] and reading["leaves_out"] is not None
            wanted = machine.expected.watts.get(meter["meter"], {}).get(reading["domain"])
            if reading["power_w"] is None:
                assert reading["doubts"] and meter["reason"]
            elif not isinstance(wanted, str):
                assert reading["power_w"] == pytest.approx(wanted, rel=0.05), reading
    counters = {"rapl", "perf"} - {readings.meter for readings in machine.description.readings}
    assert all(
        "a counter needs two readings" in reading["doubts"][0]
        for meter in listed["meters"]
        for reading in meter["readings"]
        if meter["meter"] in counters
    )


def _is_local(meter: str, wanted: object) -> bool:
    return not {"{", ","}.intersection(meter) and not isinstance(wanted, str)


def _mounted(machine: KnownMachine) -> str | None:
    """A directory on a disk of the machine."""
    text = machine.description.tree.get("proc/self/mountinfo", "")
    points = [line.split()[4] for line in text.splitlines() if " - overlay " not in line]
    return points[-1] if points else None


def test_the_page_is_that_of_the_tables() -> None:
    """docs/machines.md is made by `python -m tests.machines`."""
    assert page.PATH.read_text(encoding="utf-8") == page.text()


@pytest.mark.parametrize("name", ["dell-r640", "sata-behind-expander", "pmbus-supplies"])
def test_an_accepted_capture_has_the_table_of_its_machine(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a user captures it, with readings; the tables of these machines were written by hand."""
    machine = machines.load(name)
    with alive(machine, tmp_path / "machine") as living:
        meters = wanted_meters(living)
        samples = samples_of(meters, living.life).meters
        living.life.at(0.0)
        readings = [
            MeterReadings(
                each.info.name,
                tuple(each.times_s),
                {c.name: tuple(v) for c, v in zip(each.info.channels, each.values, strict=True)},
            )
            for each in samples
        ]
        close_meters(meters)
        taken = capture.take("{}", living.root, Replacer([], []), readings)
    capture.write(taken, tmp_path / "c.tar.gz")
    (tmp_path / "machines").mkdir()
    monkeypatch.setattr(machines, "FOLDER", tmp_path / "machines")
    folder = accept.accept(tmp_path / "c.tar.gz", "new")
    new = machines.load("new")
    assert new.description.sources[-1] == accept.SOURCE
    assert new.description.readings == tuple(readings)
    found = new.expected.meters
    assert {k: v for k, v in found.items() if not isinstance(v, str)} == {
        k: v for k, v in machine.expected.meters.items() if not isinstance(v, str)
    }
    assert new.expected.moves == pytest.approx(machine.expected.moves, rel=1e-3)
    assert new.expected.without.items() <= machine.expected.without.items()
    for meter, watts in new.expected.watts.items():
        assert watts == pytest.approx(machine.expected.watts[meter], rel=0.05)
    with alive(new, tmp_path / "again") as living:
        test_each_meter_is_found_or_rejected(living)
        test_a_record_reports_the_watts_of_the_table(living)
        test_each_drive_reports_what_the_table_contains(living)
    for bad in ("new", "Two Words"):
        with pytest.raises(RejectedError, match="--name"):
            accept.accept(tmp_path / "c.tar.gz", bad)
    assert folder == tmp_path / "machines/new"
