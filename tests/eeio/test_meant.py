"""What a mistyped word may have meant, and what a shell completes."""

import argparse
from pathlib import Path

import pytest
from tests.eeio_results.made import phase, run
from tests.eeio_results.made import stored as stored_in
from tests.plugin import Eeio, InProcess

from eeio.cli import main, parser
from eeio.commands import completion


@pytest.fixture
def stored(home: Path) -> str:
    runs = [run(0, (phase(1e6),))]
    return stored_in(home / "data/eeio/results/before-upgrade", runs).name


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["repot", "x"], "did you mean report?"),
        (["meter", "wach"], "did you mean watch?"),
        (["report", "x", "--format", "jsn"], "did you mean json?"),
        (["report", "x", "--formt", "json"], "no option '--formt' (did you mean --format?)"),
        (["report", "before-upgrad"], "did you mean before-upgrade?"),
        (["resume", "before-upgrad"], "did you mean before-upgrade?"),
        (["plan", "dumy-suite", "--directory", "/"], "did you mean dummy-suite?"),
        (["plan", "dummy-suite", "--directory", "/", "--preset", "qick"], "did you mean quick?"),
        (["record", "power", "--meter", "rappl", "--", "true"], "did you mean rapl?"),
    ],
)
def test_a_mistyped_word(
    stored: str, arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(arguments)
    except SystemExit as error:
        code = int(str(error.code))
    assert code == 2
    assert meant in " ".join(capsys.readouterr().err.split())


def test_a_word_like_none_lists_what_there_is(in_process: InProcess) -> None:
    assert "markdown" in in_process("report", "x", "--format", "zzzz", code=2).err


def _completed(action: argparse.Action, prefix: str, **known: str) -> list[str]:
    found = vars(action)["completer"](prefix=prefix, parsed_args=argparse.Namespace(**known))
    assert isinstance(found, list)
    return found


def _argument(message: str, dest: str) -> argparse.Action:
    """An argument of a command, with its completer."""
    top = parser()
    completion.attach(top)
    for word in message.split():
        (sub,) = (a for a in top._actions if isinstance(a, argparse._SubParsersAction))
        top = sub.choices[word]
    return next(action for action in top._actions if action.dest == dest)


@pytest.mark.parametrize("command", ["report", "compare", "cost", "export pts"])
def test_campaigns_are_completed(stored: str, command: str) -> None:
    dest = "campaign" if command == "export pts" else "campaigns"
    assert _completed(_argument(command, dest), "bef") == [stored]


def test_a_folder_of_a_campaign_is_completed(stored: str, home: Path) -> None:
    action = _argument("report", "campaigns")
    assert _completed(action, f"{home}/data/eeio/res") == [f"{home}/data/eeio/results/"]
    folder = f"{home}/data/eeio/results/{stored}"
    assert _completed(action, folder[:-3]) == [folder]


def test_suites_presets_and_meters_are_completed(stored: str) -> None:
    assert "dummy-suite" in _completed(_argument("run", "suite"), "d")
    presets = _completed(_argument("run", "preset"), "q", suite="dummy-suite")
    assert presets == ["quick"]
    assert "rapl" in _completed(_argument("record power", "meter"), "ra")
    assert _completed(_argument("resume", "name"), "") == [stored]
    assert "completer" not in vars(_argument("run", "name"))


def test_lists_as_json(stored: str, eeio: Eeio) -> None:
    body = eeio.json("list")
    assert body["schema_version"] == 1
    (campaign,) = body["campaigns"]
    assert (campaign["name"], campaign["stored_runs"], campaign["reason"]) == (stored, 1, None)
    assert {"dummy-suite"} <= {suite["name"] for suite in body["suites"]}
    assert all("installed" in profile for profile in body["profiles"])


@pytest.mark.parametrize("share", ["5", "1", "-5%", "1000%", "x"])
def test_a_share_of_the_gate_needs_a_percent_sign_or_a_fraction(
    share: str, in_process: InProcess
) -> None:
    """`worse:5` was taken as 500 %."""
    done = in_process("compare", "a", "b", "--fail-if", f"worse:{share}", code=2)
    assert "give such as 5% or 0.05" in " ".join(done.err.split())


def test_a_shortened_option_is_understood_by_its_beginning(
    in_process: InProcess,
) -> None:
    done = in_process("run", "eeio-suite", "--reps", "2", code=2)
    assert "did you mean --repetitions?" in " ".join(done.err.split())
