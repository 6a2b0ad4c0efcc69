"""The description of a machine: what is read, what is refused in one line, how it is laid out."""

import errno
import json
import os
from pathlib import Path

import pytest
from tests.processes import ran

from eeio.errors import RejectedError
from eeio.files import inputs
from eeio.machine.as_data import description as descriptions
from eeio.machine.as_data.description import Command, Description
from eeio_power.meters import open_meters

# Names of a laptop's powercap; the DCMI answer is 152 W, as DCMI 1.5, table 6-16 writes it.
DCMI = " dc 98 00 01 00 ff 00 98 00 00 00 00 00 e8 03 00\n 00 40\n"
COMPLETE = Description(
    about="a server of two drives",
    sources=("DCMI 1.5, table 6-16",),
    tree={
        "sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/name": "package-0",
        "proc/device-tree/model": "board\0",
        "dev/ipmi0": "",
    },
    links={
        "sys/class/powercap/intel-rapl:0": "../../devices/virtual/powercap/intel-rapl/intel-rapl:0"
    },
    refused={
        "sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj": "EACCES",
        "sys/class/hwmon/hwmon0/power1_input": "ENODATA",
    },
    commands=(
        Command(("hdparm", "-C", "/dev/sda"), 0, "\n/dev/sda:\n drive state is:  standby\n"),
        Command(("hdparm", "-C", "/dev/it's"), 5, "", "no such $(drive)\n"),
        Command(("ipmitool", "-I", "open", "-c", "raw", "0x2c", "2", "0xdc", "1", "0", "0"), 0,
                DCMI),
        Command(("ipmitool", "-I", "open", "-c", "sdr", "get", "Pwr Consumption"), 0,
                "Pwr Consumption,88,Watts,ok\n"),
    ),
    services={"redfish": {"/redfish/v1/Chassis": {"Members": []}}},
)  # fmt: skip


@pytest.mark.parametrize("name", ["machine.json", "machine.yaml"])
def test_saved_and_loaded_it_is_the_same(tmp_path: Path, name: str) -> None:
    descriptions.save(COMPLETE, tmp_path / name)
    assert descriptions.load(tmp_path / name) == COMPLETE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("machine: 2\nabout: x", "version 2"),
        ("about: x", "machine is missing"),
        ("machine: 1\nabout: x\nwatts: 5", "watts"),
        ("machine: 1\nabout: x\ntree: {sys/a: 5}", "tree/sys/a: 5 is not text"),
        ("machine: 1\nabout: x\ntree: {/sys/a: ''}", "begin without a slash"),
        ("machine: 1\nabout: x\ntree: {sys/../../etc/passwd: ''}", "out of the tree"),
        ("machine: 1\nabout: x\ntree: {sys//a: ''}", "not a file path"),
        ("machine: 1\nabout: x\ntree: {'': ''}", "not a file path"),
        ('machine: 1\nabout: x\ntree: {"a\\0b": ""}', "not a file path"),
        ("machine: 1\nabout: x\ntree: {5: ''}", "key 5 is not text"),
        ("machine: 1\nabout: x\ntree: {~: ''}", "the key None is not text"),
        ("machine: 1\nabout: x\ntree: {sys/a: '', sys/a/b: ''}", "is below sys/a"),
        ("machine: 1\nabout: x\ntree: {l/a: ''}\nlinks: {l: m}", "is below l"),
        ("machine: 1\nabout: x\ntree: {a: ''}\nlinks: {a: b}", "is repeated"),
        ("machine: 1\nabout: x\nlinks: {sys/a: /etc/passwd}", "leads out of the tree"),
        ("machine: 1\nabout: x\nlinks: {sys/a: ../../etc}", "leads out of the tree"),
        # Lexically inside; through a link that points elsewhere it would not be.
        ("machine: 1\nabout: x\nlinks: {a/l: .., b: a/l/../../etc}", "leads out of the tree"),
        ("machine: 1\nabout: x\nrefused: {sys/a: ENOTHING}", "unknown error 'ENOTHING'"),
        ("machine: 1\nabout: x\ncommands: [{run: [/bin/sh]}]", "not a program name"),
        ("machine: 1\nabout: x\ncommands: [{run: [..]}]", "not a program name"),
        ("machine: 1\nabout: x\ncommands: [{run: [a, b]}, {run: [a, b]}]", "a b is repeated"),
        ("machine: 1\nabout: x\ncommands: [{run: []}]", "commands/0: run: 0 arguments"),
        ('machine: 1\nabout: x\ncommands: [{run: [a, "b\\0"]}]', "NUL"),
        ("[" * 300, "deeper"),
        ("machine: 1\nabout: !!python/object:os.system x", "not YAML"),
    ],
)  # fmt: skip
def test_a_wrong_description_is_rejected_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "machine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RejectedError) as caught:
        descriptions.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_description_without_end_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(RejectedError, match="longer than 16 MiB"):
        descriptions.load(path)
    tree = {f"sys/{number}": "" for number in range(inputs.MACHINE_FILES + 1)}
    path.write_text(json.dumps({"machine": 1, "about": "x", "tree": tree}), encoding="utf-8")
    with pytest.raises(RejectedError, match="more than 50000 files"):
        descriptions.load(path)


def test_a_text_that_is_not_unicode_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(r'{"machine": 1, "about": "x", "tree": {"sys/a": "\ud800"}}', encoding="ascii")
    with pytest.raises(RejectedError, match="not Unicode"):
        descriptions.load(path)


def test_the_tree_is_laid_out_with_links_and_what_cannot_be_read(tmp_path: Path) -> None:
    root, _ = descriptions.lay_out(COMPLETE, tmp_path / "machine")
    zone = root / "sys/class/powercap/intel-rapl:0"
    assert (zone / "name").read_text(encoding="ascii") == "package-0\n"
    assert (root / "proc/device-tree/model").read_bytes() == b"board\0\n"
    assert not os.access(zone / "energy_uj", os.R_OK)
    with pytest.raises(PermissionError):
        (zone / "energy_uj").read_bytes()
    with pytest.raises(OSError) as failed:
        (root / "sys/class/hwmon/hwmon0/power1_input").read_bytes()
    assert failed.value.errno == errno.EIO
    with pytest.raises(RejectedError, match="not empty"):
        descriptions.lay_out(COMPLETE, tmp_path / "machine")


def test_commands_answer_what_was_recorded_and_nothing_else(tmp_path: Path) -> None:
    _, programs = descriptions.lay_out(COMPLETE, tmp_path / "machine")

    def run(*arguments: str) -> tuple[int, str, str]:
        done = ran([programs / "hdparm", *arguments], env={"PATH": str(programs)}, code=None)
        return done.returncode, done.stdout, done.stderr

    assert run("-C", "/dev/sda") == (0, COMPLETE.commands[0].prints, "")
    assert run("-C", "/dev/it's") == (5, "", "no such $(drive)\n")
    assert run("-y", "/dev/sda") == (64, "", "hdparm: not in this description: -y /dev/sda\n")
    assert run("-C") == (64, "", "hdparm: not in this description: -C\n")
    assert run() == (64, "", "hdparm: not in this description: \n")


def test_ipmitool_answers_lines_as_the_meter_sends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, programs = descriptions.lay_out(COMPLETE, tmp_path / "machine")
    if not (programs / "stdbuf").exists():
        pytest.skip("stdbuf is not there")
    monkeypatch.setenv("PATH", str(programs))
    (dcmi,) = open_meters(["ipmi,reader=no"], root)
    (sensor,) = open_meters(["ipmi,reader=no,mode=sdr,sensor=Pwr Consumption"], root)
    try:
        assert [*dcmi.read(), *sensor.read()] == [152.0, 88.0]
    finally:
        dcmi.close()
        sensor.close()
