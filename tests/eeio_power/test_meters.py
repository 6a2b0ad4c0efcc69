"""Naming, finding and opening meters."""

import ast
import sys
from pathlib import Path

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.own_meter import BENCH
from tests.simulators import FakeHwmon, FakeRapl

import eeio_power
from eeio_power import meters as meters_package
from eeio_power.errors import PowerError
from eeio_power.meters import close_meters, discover, meter_names, open_meters, parse_spec


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root with RAPL, an ACPI power meter and /proc/stat."""
    FakeRapl(tmp_path / "sys/class/powercap")
    FakeHwmon(tmp_path / "sys/class/hwmon").add_chip("power_meter", {"power1_average": 90_000_000})
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu  1 0 1 1 0 0 0 0 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\n")
    return tmp_path


def test_auto_opens_what_measures_and_never_the_model(machine: Path, tmp_path: Path) -> None:
    assert {"rapl", "hwmon", "modelled"} <= set(meter_names())
    opened = open_meters(["auto"], machine)
    assert {"hwmon", "rapl"} <= {m.name for m in opened}
    assert {m.kind for m in opened} == {"measured"}
    nothing = {m.name for m in open_meters(["auto"], tmp_path / "empty")}
    assert nothing.isdisjoint({"hwmon", "rapl", "modelled"})
    assert open_meters(["none"], machine) == []
    assert open_meters([], machine) == []


def test_auto_next_to_a_named_meter_does_not_open_it_twice(machine: Path) -> None:
    opened = open_meters(["auto", "rapl,max_w=300", "modelled"], machine)
    specs = [m.spec for m in opened]
    assert {"hwmon", "modelled", "rapl,max_w=300"} <= set(specs)
    assert "rapl" not in specs


def test_discover_finds_every_kind_there_or_not(machine: Path, tmp_path: Path) -> None:
    found = {f.spec: f for f in discover(machine)}
    assert set(found) == set(meter_names())
    assert found["rapl"].available
    assert found["rapl"].domains == ("package", "dram")
    assert found["hwmon"].domains == ("system",)
    assert found["modelled"].kind == "modelled"
    for finding in discover(tmp_path / "empty"):
        if finding.spec in ("rapl", "hwmon", "modelled"):
            assert not finding.available
            assert finding.reason
            assert finding.remedy


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wattmeter", "there is no meter 'wattmeter'; there are: auto, none, .*rapl"),
        ("", "there is no meter ''"),
        ("rapl,speed=3", "rapl has no option 'speed'; it has: root .*max_w .*name"),
        ("rapl,root", "'root' is not an option; write options as key=value"),
        ("rapl,root=", "not an option"),
        ("rapl,root=/a,root=/b", "is repeated"),
        ("auto,root=/x", "no meter 'auto'"),
        ("rapl,max_w=0", "max_w=0 is not a number above 0"),
        ("perf,max_w=0", "max_w=0 is not a number above 0"),
        ("wattsup:/dev/null,max_w=0", "max_w=0 is not a number above 0"),
        ("csv:x,map=time:T+power_w:W,max_w=0", "max_w=0 is not a number above 0"),
        ("csv:x,map=time:T+power_w:W,period_s=0", "period_s=0 is not a number above 0"),
        ("shelly:127.0.0.1:1,period_s=0", "period_s=0 is not a number above 0"),
        ("tasmota:127.0.0.1:1,period_s=0", "period_s=0 is not a number above 0"),
        ("redfish:127.0.0.1:1,period_s=0", "period_s=0 is not a number above 0"),
        ("csv:x,map=time:T+power_w:W,accuracy=-1", "accuracy=-1 is not a number of at least 0"),
    ],
)
def test_wrong_specs_say_what_exists(machine: Path, spec: str, message: str) -> None:
    with pytest.raises(PowerError, match=message):
        open_meters([spec], machine)


def test_none_stands_alone(machine: Path) -> None:
    with pytest.raises(PowerError, match="none"):
        open_meters(["none", "rapl"], machine)


def test_two_meters_of_one_kind_need_names(machine: Path, tmp_path: Path) -> None:
    other = FakeRapl(tmp_path / "other").root
    with pytest.raises(PowerError, match="name=LABEL"):
        open_meters(["rapl", f"rapl,root={other}"], machine)
    opened = open_meters(["rapl", f"rapl,root={other},name=board"], machine)
    assert [m.name for m in opened] == ["rapl", "board"]
    close_meters(opened)


def test_specs_are_parsed() -> None:
    assert parse_spec("hwmon") == ("hwmon", {})
    assert parse_spec("modelled, idle_w=40,busy_w = 90") == (
        "modelled",
        {"idle_w": "40", "busy_w": "90"},
    )


def test_a_meter_is_added_by_adding_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "addedmeter.py").write_text(
        "from eeio_power.meters import Detected\n"
        "OPTIONS = {'port': 'where it is'}\n"
        "def open_meter(spec, options, root): raise AssertionError(options['port'])\n"
        "def find(root): return Detected('addedmeter', 'measured', ('system',), False, 'no port')\n"
    )
    (tmp_path / "broken.py").write_text("import a_module_nobody_has\n")
    monkeypatch.setattr(meters_package, "__path__", [*meters_package.__path__, str(tmp_path)])
    assert {"addedmeter", "broken"} <= set(meter_names())
    with pytest.raises(AssertionError, match="usb0"):
        open_meters(["addedmeter,port=usb0"])
    with pytest.raises(PowerError, match="a_module_nobody_has"):
        open_meters(["broken"])
    found = {f.spec: f for f in discover(tmp_path)}
    assert found["addedmeter"].reason == "no port"
    assert "a_module_nobody_has" in (found["broken"].reason or "")
    monkeypatch.delitem(sys.modules, "eeio_power.meters.addedmeter")


def own(folder: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setenv("EEIO_METERS", str(folder))


def test_a_meter_of_ones_own_is_found_opened_and_taken_by_auto(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(tmp_path / "mine", monkeypatch, bench=BENCH, _part="raise AssertionError")
    assert "bench" in meter_names() and "_part" not in meter_names()
    for specs in (["bench:usb0,name=desk"], ["auto"]):
        (meter,) = open_meters(specs, tmp_path / "no-machine")
        assert meter.read() == [7.5]
    meter = one_meter("bench:usb0,name=desk")
    assert (meter.spec, meter.name) == ("bench:usb0,name=desk", "desk")
    with pytest.raises(PowerError, match=r"bench has no option 'colour'; it has: port"):
        open_meters(["bench,colour=red"])
    # The same name in another folder is another meter.
    own(tmp_path / "other", monkeypatch, bench=BENCH.replace("7.5", "8.5"))
    assert one_meter("bench").read() == [8.5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import a_module_nobody_has", r"bench.py:1: ModuleNotFoundError: .*nobody_has"),
        ("def find(:", r"bench.py:1: SyntaxError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("OPTIONS = {}", r"bench.py defines no open_meter"),
        (BENCH.replace("return Bench", "return 1 / 0 #"), r"open_meter failed: .*ZeroDivision"),
        (BENCH.replace("return Bench", "return object #"), "has no spec, name, kind"),
        (BENCH.replace('"measured"', '"guessed"'), "its kind is one of measured"),
        (BENCH.replace('system", "power_w', 'moon", "power_w'), "a domain of system"),
    ],
)
def test_a_broken_meter_of_ones_own_reports_where_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    own(tmp_path / "mine", monkeypatch, bench=text, good=BENCH.replace("bench", "good"))
    with pytest.raises(PowerError, match=message):
        open_meters(["bench"])
    found = {finding.spec: finding for finding in discover(tmp_path / "no-machine")}
    assert found["good"].available
    assert found["bench"].reason or found["bench"].available


def test_a_find_that_fails_is_reported_in_its_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"bench": BENCH.replace("return Detected", "return {}[0] #"),
             "none": BENCH.replace("return Detected", "return None #")}  # fmt: skip
    texts["nothing"] = texts.pop("none")
    own(tmp_path / "mine", monkeypatch, **texts)
    found = {finding.spec: finding for finding in discover(tmp_path / "no-machine")}
    assert "find failed: " in str(found["bench"].reason) and "KeyError" in str(
        found["bench"].reason
    )
    assert "find gives no Detected" in str(found["nothing"].reason)


@pytest.mark.parametrize(
    ("name", "message"),
    [("rapl", "eeio itself has a meter 'rapl' already"),
     ("auto", "eeio itself has a meter 'auto' already"),
     ("my-meter", "is not a valid meter name")],
)  # fmt: skip
def test_a_name_that_is_taken_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    own(tmp_path / "mine", monkeypatch, **{name: BENCH})
    with pytest.raises(PowerError, match=message):
        open_meters(["modelled"])


def test_folders_that_are_missing_and_names_in_two_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "b"):
        own(tmp_path / folder, monkeypatch, bench=BENCH)
    monkeypatch.setenv("EEIO_METERS", f"{tmp_path}/a:{tmp_path}/b")
    with pytest.raises(PowerError, match=f"{tmp_path}/a/bench.py has a meter 'bench' already"):
        meter_names()
    monkeypatch.setenv("EEIO_METERS", f"{tmp_path}/a::{tmp_path}/nowhere")
    with pytest.raises(PowerError, match="nowhere: No such file or directory; make the folder"):
        discover(tmp_path)


def test_the_package_needs_nothing_but_the_standard_library() -> None:
    for file in Path(next(iter(eeio_power.__path__))).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            for name in names:
                top = name.split(".")[0]
                assert top in ("eeio_power", "eeio") or top in sys.stdlib_module_names, (
                    f"{file}: {name}"
                )


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (("demo,name=a", "demo,name=a"), "is named twice"),
        (("demo,name=a", "demo,name=b"), "cannot be combined"),
        (("demo,lag_s=1", "modelled"), "cannot be combined"),
    ],
)
def test_meters_that_are_named_twice_are_not_merged(specs: tuple[str, ...], message: str) -> None:
    with pytest.raises(PowerError, match=message):
        open_meters(specs)
