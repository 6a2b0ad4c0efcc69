"""Bad input gets exit code 2, a message that names it, and nothing is touched."""

import os
from pathlib import Path

import pytest
from tests.plugin import Eeio


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "no-such-suite", "--directory", "{target}"], "no-such-suite"),
        (["run", "dummy-suite", "--directory", "{target}", "--preset", "huge"], "huge"),
        (["run", "dummy-suite", "--directory", "{target}/missing"], "{target}/missing"),
        (["run", "dummy-suite"], "--directory"),
        (["run", "dummy-suite", "--directory", "{target}", "--meter", "geiger"], "geiger"),
        (["run", "dummy-suite", "--directory", "{target}", "--name", "../x"], "../x"),
        (["run", "dummy-suite", "--directory", "{target}", "--filesystem", "fat"], "fat"),
        (["run", "dummy-suite", "--directory", "{target}", "--device", "{file}"], "{file}"),
        (["run", "dummy-suite", "--directory", "{target}", "--device", "/dev/no"], "/dev/no"),
        (["run", "dummy-suite", "--directory", "{target}", "--erase", "/dev/no"], "--device"),
        (["run", "dummy-suite", "--directory", "/proc"], "/proc"),
        (["plan", "dummy-suite", "--directory", "{target}/missing"], "{target}/missing"),
        (["resume", "never-begun"], "never-begun"),
        (["report", "never-begun"], "never-begun"),
    ],
)
def test_rejected(home: Path, eeio: Eeio, arguments: list[str], named: str) -> None:
    file = home / "plain-file"
    file.write_text("not a device")
    places = {"target": str(home / "target"), "file": str(file)}
    message = eeio(*(argument.format(**places) for argument in arguments), code=2).stderr.strip()
    assert message.startswith("eeio: "), message
    assert named.format(**places) in message
    assert len(message.splitlines()) == 1
    assert list((home / "target").iterdir()) == []
    assert not list((home / "data/eeio/results").glob("*"))


def test_unknown_option_is_a_usage_error(eeio: Eeio) -> None:
    assert "--frobnicate" in eeio("run", "dummy-suite", "--frobnicate", code=2).stderr


def test_too_little_room_is_found_before_anything_runs(home: Path, eeio: Eeio) -> None:
    profile = home / "profiles" / "eeio-big-1.0.0"
    profile.mkdir(parents=True)
    source = Path(os.environ["EEIO_TEST_PROFILES"]) / "eeio-dummy-1.0.0"
    for file in source.iterdir():
        (profile / file.name).write_bytes(file.read_bytes())
    (profile / "presets.conf").write_text("standard file_size=1000000g\n")
    suite = home / "suites" / "big"
    suite.mkdir(parents=True)
    for file in (Path(os.environ["EEIO_SUITES"]) / "dummy-suite").iterdir():
        (suite / file.name).write_text(file.read_text().replace("eeio-dummy", "eeio-big"))
    done = eeio.run(str(suite), environment={"EEIO_TEST_PROFILES": str(home / "profiles")}, code=2)
    assert "needed" in done.stderr and str(home / "target") in done.stderr


def test_a_name_that_exists(home: Path, eeio: Eeio) -> None:
    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none",
             "--name", "mine")  # fmt: skip
    eeio(*arguments)
    before = (home / "data/eeio/results/mine/runs.jsonl").read_bytes()
    assert "eeio resume mine" in eeio(*arguments, code=2).stderr
    assert (home / "data/eeio/results/mine/runs.jsonl").read_bytes() == before


def test_a_campaign_named_twice_in_two_ways(home: Path, eeio: Eeio) -> None:
    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none",
             "--name", "mine")  # fmt: skip
    eeio(*arguments)
    (home / "link").symlink_to(home / "data/eeio/results/mine")
    for other in (home / "link", home / "data/eeio/../eeio/results/mine"):
        assert "is repeated" in eeio("report", "mine", str(other), code=2).stderr


def test_a_folder_in_the_way_does_not_hide_a_stored_campaign(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder may be anybody's, as in /tmp."""
    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none",
             "--name", "mine")  # fmt: skip
    eeio(*arguments)
    (home / "mine").mkdir()
    monkeypatch.chdir(home)
    assert "Machine of mine" in eeio("report", "mine").stdout
    eeio("report", "./mine", code=2)
    (home / "data/eeio/results/mine").rename(home / "copied")
    assert "Machine of mine" in eeio("report", "copied").stdout


def test_a_newer_schema_is_rejected(home: Path, eeio: Eeio) -> None:
    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none",
             "--name", "mine")  # fmt: skip
    eeio(*arguments)
    path = home / "data/eeio/results/mine/runs.jsonl"
    path.write_text(path.read_text().replace('"schema_version":2', '"schema_version":3'))
    for arguments in (("report", "mine"), ("report", "mine", "--format", "json")):
        done = eeio(*arguments, code=2)
        assert "schema version 3" in done.stderr and str(path) in done.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("campaign.json", b'{"schema_version": 1}'),
        ("machine.json", b'{"schema_version": 1}'),
        ("idle.json", b'{"schema_version": 1}'),
        ("runs.jsonl", b"\xff\xfe\n"),
        ("runs.jsonl", b"null\n"),
    ],
)
def test_damaged_files_of_a_campaign_are_named(
    home: Path, eeio: Eeio, name: str, content: bytes
) -> None:
    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none",
             "--name", "mine")  # fmt: skip
    eeio(*arguments)
    path = home / "data/eeio/results/mine" / name
    path.write_bytes(content)
    for command in ("report", "resume"):
        done = eeio(command, "mine", code=2)
        assert str(path) in done.stderr and "Traceback" not in done.stderr
    eeio("list")


@pytest.mark.parametrize(
    "arguments",
    [
        "level=filesystem operation=frobnicate",
        "level=filesystem operation=read spatiality=zigzag",
        "level=filesystem processes=two",
        "level=filesystem processes=0",
        "level=filesystem request_size=big",
        "level=filesystem file_size=big",
        "level=filesystem runtime_s=long",
        "level=filesystem 'not closed",
    ],
)
def test_a_suite_with_factors_that_mean_nothing(home: Path, eeio: Eeio, arguments: str) -> None:
    suite = home / "suites" / "own"
    suite.mkdir(parents=True)
    for file in (Path(os.environ["EEIO_SUITES"]) / "dummy-suite").iterdir():
        (suite / file.name).write_text(file.read_text())
    definition = suite / "suite-definition.xml"
    first, middle, rest = definition.read_text().partition("<Arguments>")
    rest = rest.partition("</Arguments>")[2]
    definition.write_text(f"{first}{middle}{arguments}</Arguments>{rest}")
    for command in ("plan", "run"):
        done = eeio(command, str(suite), "--directory", str(home / "target"), code=2)
        assert done.stderr.startswith("eeio: ") and len(done.stderr.splitlines()) == 1
    assert not list((home / "data/eeio/results").glob("*"))


def test_a_campaign_of_nothing_is_rejected(home: Path, eeio: Eeio) -> None:
    suite = home / "suites" / "own"
    suite.mkdir(parents=True)
    for file in (Path(os.environ["EEIO_SUITES"]) / "dummy-suite").iterdir():
        (suite / file.name).write_text(file.read_text())
    (suite / "protocol.yaml").write_text(
        "presets: {standard: {repetitions: 1, settle_s: 0, idle_s: 0, is_measurement: true, "
        "leave_out: [{profile: eeio-dummy-1.0.0, factors: {}, reason: too slow}]}}\n"
    )
    arguments = (str(suite), "--directory", str(home / "target"))
    assert "too slow" in eeio("run", *arguments, "--meter", "none", code=2).stderr
    assert not list((home / "data/eeio/results").glob("*"))
    planned = eeio("plan", *arguments, code=2)
    assert "left out:" in planned.stdout
    assert "too slow" in planned.stderr


def test_two_campaigns_on_one_disk(home: Path, eeio: Eeio) -> None:
    from eeio.machine.filesystem import backing_device
    from eeio.machine.lock import drive_lock

    target = home / "target"
    device, _ = backing_device(target)
    if device is None:
        pytest.skip("no block device lies behind the temporary directory")
    with drive_lock(device.disk_sysfs.name):
        done = eeio("run", "dummy-suite", "--directory", str(target), "--meter", "none", code=2)
    assert device.disk_sysfs.name in done.stderr and str(os.getpid()) in done.stderr
    assert not list((home / "data/eeio/results").glob("*"))


def test_a_folder_on_no_mount(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a chroot whose root is no mount point: it stands in no mount table."""
    from eeio.errors import RejectedError
    from eeio.machine import filesystem

    monkeypatch.setattr(filesystem, "mounts", lambda root: [])
    with pytest.raises(RejectedError, match=f"no mount at {home} or a folder above it, not even /"):
        filesystem.mount_of(home)


@pytest.mark.parametrize("processes", ["5" * 5000, "²", "0", "-1", "", "1.5"])
def test_a_number_of_processes_that_is_none(processes: str) -> None:
    from eeio.errors import RejectedError
    from eeio.measure.profiles.suite import experiment_of

    with pytest.raises(RejectedError, match=r"processes is .{0,120}; it is a number of at least 1"):
        experiment_of("fio", {"level": "device", "processes": processes}, "file", None)
