"""What the module under PTS is told of the suites that are run."""

import json
from pathlib import Path

import pytest

from eeio.errors import RejectedError
from eeio.measure.profiles import suite as suites
from eeio.pts import protocol

SUITES = Path(__file__).parents[3] / "suites"


@pytest.mark.parametrize("name", sorted(path.name for path in SUITES.glob("eeio-*")))
@pytest.mark.parametrize("preset", ["quick", "standard", "paper"])
def test_a_suites_own_protocol(name: str, preset: str) -> None:
    wanted = suites.load(SUITES / name).protocol(preset)
    body = protocol.protocol_of(preset, [str(SUITES / name)])
    assert body == {
        "repetitions": wanted.repetitions, "settle_s": wanted.settle_s, "idle_s": wanted.idle_s,
        "work_bytes": wanted.work_bytes, "reasons": {}, "left_out": body["left_out"],
    }  # fmt: skip


def test_what_a_preset_leaves_out_is_that_of_the_runner() -> None:
    suite = suites.load(SUITES / "eeio-suite")
    body = protocol.protocol_of("quick", [str(suite.folder)])
    text = "eeio-fio-1.0.0 buffer=off level=device operation=read request_size=4m spatiality=random"
    assert text in body["left_out"]
    groups = suite.left_out("quick")
    assert (
        len(body["left_out"]) == sum(any(g.matches(e) for g in groups) for e in suite.entries) > 30
    )
    assert protocol.protocol_of("quick", [""])["left_out"] == []


def test_outside_of_a_suite_it_is_that_of_eeio_suite(tmp_path: Path) -> None:
    usual = protocol.protocol_of("standard", [""])
    assert usual["repetitions"] == 6
    (tmp_path / "suite-definition.xml").write_text("<x/>")
    for folders in ([], [""], [str(tmp_path)], ["", str(SUITES / "eeio-suite")]):
        assert {**protocol.protocol_of("standard", folders), "left_out": []} == usual


def test_suites_that_differ_give_a_reason_instead_of_a_number() -> None:
    longer = next(
        folder.name
        for folder in sorted(SUITES.glob("eeio-*"))
        if suites.load(folder).protocol("paper").idle_s == 160
    )
    both = [str(SUITES / name) for name in ("eeio-suite", longer)]
    body = protocol.protocol_of("paper", both)
    assert (body["repetitions"], body["settle_s"], body["idle_s"]) == (10, 20, None)
    reason = f"the suites differ: eeio-suite has 60, {longer} has 160"
    assert body["reasons"] == {"idle_s": reason}


def test_a_suite_that_fixes_the_work_is_reported_and_next_to_another_has_a_reason() -> None:
    both = [str(SUITES / name) for name in ("eeio-panadero2012", "eeio-suite")]
    assert protocol.protocol_of("standard", both[:1])["work_bytes"] == 1 << 30
    assert protocol.protocol_of("standard", both[1:])["work_bytes"] is None
    body = protocol.protocol_of("standard", both)
    reason = "the suites differ: eeio-panadero2012 has 1073741824, eeio-suite has no value"
    assert (body["work_bytes"], body["reasons"]) == (None, {"work_bytes": reason})


def test_as_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert protocol.main(["quick"]) == 0
    assert json.loads(capsys.readouterr().out)["repetitions"] == 3
    for arguments, message in ((["huge"], "has no preset 'huge'"), ([], "usage")):
        assert protocol.main(arguments) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "suite-definition.xml").write_bytes(
        (SUITES / "eeio-suite" / "suite-definition.xml").read_bytes()
    )
    (tmp_path / "protocol.yaml").write_text("presets: 5")
    with pytest.raises(RejectedError, match="not a suite protocol"):
        protocol.protocol_of("quick", [str(tmp_path)])
