"""The commands of eeio bench: their options, names, failures and outliers."""

import json
from pathlib import Path

import pytest
from tests.campaigns import killed
from tests.eeio.test_bench import MIB, bench, found
from tests.plugin import Eeio

from eeio.analysis.observation import Missing
from eeio.comparison.commands import Bench, sorted_by
from eeio.errors import RejectedError
from eeio.measure.bench import plan, request
from eeio.measure.bench.plan import Executions, How
from eeio.record.design import Options
from eeio.record.store import load


def test_options_may_stand_between_commands(home: Path, eeio: Eeio) -> None:
    body = found(home, eeio, "true", "-r", "2", "sh -c :", "--meter", "none", "echo")
    assert [one["command"] for one in body["commands"]] == ["true", "sh -c :", "echo"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("exit 3",), 1, "exit 3: exit code 3; to measure it anyway, use --ignore-failure"),
        (("no-such-command",), 1, "a shell finds no such command"),
        (("--", "no-such-command"), 2, "no-such-command: No such file or directory"),
        (("sleep 60", "--timeout", "0.3"), 1, "not done after 0.3 s, and was ended"),
        (("sleep 5 &",), 1, "1 of its processes continued in the background"),
        (("setsid sleep 5 & sleep 0.05",), 1, "1 of its processes continued in the background"),
        (("kill -9 $PPID; sleep 1",), 1, "the process that times it was killed (SIGKILL)"),
        (("true", "--stdin", "/nowhere"), 2, "--stdin /nowhere: no such file"),
        (("true", "--directory", "/nowhere"), 2, "/nowhere: no such directory"),
        (("true", "true"), 2, "a command is repeated"),
        ((), 2, "no command"),
        (("true", "--prepare", "exit 4"), 1, "--prepare exit 4: exit code 4"),
        (("true", "-P", "n", "1", "2"), 2, "no command has the parameter {n}"),
        (("true", "--meter", "rapl,root=/nowhere"), 2, "/nowhere"),
        (("stty < /dev/tty",), 1, "exit code"),
    ],
)
def test_what_cannot_be_measured_is_one_line(
    home: Path, eeio: Eeio, arguments: tuple[str, ...], code: int, message: str
) -> None:
    meter = () if "--meter" in arguments else ("--meter", "none")
    place = arguments.index("--") if "--" in arguments else len(arguments)
    done = bench(home, eeio, *arguments[:place], *meter, *arguments[place:], code=code)
    assert message in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (home / "data/eeio/results/b").exists()


def test_failures_that_are_ignored_are_counted(home: Path, eeio: Eeio) -> None:
    body = found(home, eeio, "sleep 0.25; exit 3", "-i", "-r", "2", "--meter", "none")
    assert body["commands"][0]["exit_codes"] == {"3": 2} and body["commands"][0]["n"] == 2


def test_a_command_that_fails_later_is_no_figure(home: Path, eeio: Eeio) -> None:
    """The first time it works, then what it wants is gone."""
    (home / "target/once").write_text("x")
    done = bench(
        home, eeio, "sleep 0.25; rm once", "--format", "json", "-r", "2", "--meter", "none", code=3
    )
    (one,) = json.loads(done.stdout)["commands"]
    assert one["n"] == 0 and one["duration_s"] is None
    assert one["reason"].startswith("exit code 1: rm: cannot remove")


def test_it_goes_on_after_a_kill(home: Path, eeio: Eeio) -> None:
    killed(
        "[3/", "bench", "sleep 0.2", "sleep 0.25", "-r", "4", "--meter", "none", "--seed", "1",
        "--name", "b", "--directory", str(home / "target"),
    )  # fmt: skip
    done = eeio("resume", "b")
    assert len(load(home / "data/eeio/results/b").runs) == 8
    assert "sleep 0.25" in done.stdout, "the row says which command it is"


def test_it_goes_on_until_it_is_known(home: Path, eeio: Eeio) -> None:
    body = found(home, eeio, "sleep 0.2", "--precision", "20%", "--meter", "none")
    campaign = load(home / "data/eeio/results/b")
    (why,) = campaign.design.stopped.values()
    assert why.startswith("precise enough") or body["commands"][0]["n"] == 30


def test_cold_needs_root(home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EEIO_DROP_CACHES", str(home / "nowhere"))
    done = bench(home, eeio, "true", "--cold", "--meter", "none", code=2)
    assert "could not be proved to be cold" in done.stderr


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("format", ["table", "csv", "markdown"])
def test_formats(home: Path, eeio: Eeio, format: str) -> None:
    done = bench(home, eeio, "true", "false || true", "-r", "2", "--meter", "none",
                 "--format", format)  # fmt: skip
    assert "false || true" in done.stdout.replace("\\|", "|")
    if format == "table":
        assert "times the time of" in done.stdout and "no meter" in done.stdout


def test_steps_of_a_scan_have_no_rounding() -> None:
    assert request.scanned("x", "0", "0.3", "0.1") == ("x", ["0.0", "0.1", "0.2", "0.3"])
    with pytest.raises(RejectedError, match="no value from"):
        request.scanned("x", "2", "1", None)
    with pytest.raises(RejectedError, match="1001 values"):
        request.scanned("x", "0", "1000", None)
    with pytest.raises(RejectedError, match="not a valid parameter name"):
        request.scanned("a b", "0", "1", None)


def test_names_are_in_every_output_and_campaigns_are_compared_by_them(
    home: Path, eeio: Eeio
) -> None:
    (home / "target/a").write_bytes(b"x" * MIB)
    # No writes: on a busy machine their flush may begin too late, which leaves them out.
    for name, text in (("before", "cat a a >/dev/null"), ("after", "cat a >/dev/null")):
        arguments = ("bench", "-n", "copy", text, "sleep 0.2", "-r", "3", "--meter", "demo",
                 "--directory", str(home / "target"))  # fmt: skip
        exported = home / "hyperfine.json", home / "table.md"
        done = eeio(*arguments, "--name", name, "--format", "json",
                    "--export-json", str(exported[0]),
                    "--export-markdown", str(exported[1]))  # fmt: skip
        commands = json.loads(done.stdout)["commands"]
        assert [(c["command"], c["text"]) for c in commands] == [
            ("copy", text), ("sleep 0.2", "sleep 0.2"),
        ]  # fmt: skip
        results = json.loads(exported[0].read_text())["results"]
        assert [one["command"] for one in results] == ["copy", "sleep 0.2"]
        assert "\n| copy | " in exported[1].read_text()
    gate = ("compare", "before", "after", "--fail-if", "worse:3%:time", "--detect", "10%")
    log = eeio(*gate, "--undecided", "pass", code=(0, 4)).stderr
    assert "would be found in 9 of 10 such comparisons" in log and "eeio plan" not in log, log
    compared = eeio("compare", "before", "after", "--format", "json")
    rows = json.loads(compared.stdout)["changes"][0]["experiments"]
    assert sorted(row["experiment"] for row in rows) == ["copy", "sleep 0.2"]
    gate = eeio("compare", "before", "after", "--fail-if", "worse:100%:time")
    assert "of 2 experiments worse by more than 100 %" in gate.stderr, gate.stderr


def test_commands_are_sorted(home: Path, eeio: Eeio) -> None:
    commands = ("sleep 1", "sleep 0.25", "sleep 1.75")
    body = found(home, eeio, *commands, "-r", "1", "--meter", "none", "--sort", "s")
    assert [of["command"] for of in body["commands"]] == ["sleep 0.25", "sleep 1", "sleep 1.75"]
    first = body["comparisons"][0]
    assert (first["a"], first["b"]) == ("sleep 1", "sleep 0.25"), "in the order of the request"


def test_a_command_without_the_figure_is_last() -> None:
    def of(label: str, energy_j: tuple[float, ...] | Missing) -> Bench:
        figures = {"energy_j": energy_j, "efficiency_bytes_per_j": energy_j}
        return Bench(label, {}, figures, 1, {}, None, None)

    benches = [of("a", Missing("no meter")), of("b", (2.0,)), of("c", (1.0, 3.5, 1.0))]
    assert [bench.label for bench in sorted_by(benches, "j")] == ["c", "b", "a"]
    assert [bench.label for bench in sorted_by(benches, "mb/j")] == ["b", "c", "a"]


def test_names_of_commands() -> None:
    def names(texts: list[str], given: list[str], **parameters: list[str]) -> list[str | None]:
        return [one.name for one in request.commands(texts, (), parameters, given)]

    assert names(["a", "b"], ["first"]) == ["first", None]
    assert names(["a {x} {y}"], ["of {x}"], x=["1", "2"], y=["3"]) == [
        "of 1 (y = 3)", "of 2 (y = 3)",
    ]  # fmt: skip
    for texts, given, message in (
        (["a"], ["x", "y"], "2 names"),
        (["a", "b"], ["x", "x"], "two commands have this name"),
        (["a"], [" "], "a name is empty"),
    ):
        with pytest.raises(RejectedError, match=message):
            names(texts, given)


def test_the_shell_of_commands() -> None:
    def call(text: str, shell: str | None) -> object:
        return request.commands([text], (), {}, (), shell)[0].call

    assert call("a 'b c'", None) == "a 'b c'"
    assert call("a 'b c'", "bash -e") == ("bash", "-e", "-c", "a 'b c'")
    assert call("a 'b c'", "none") == ("a", "b c")
    for text, shell in (("a 'b", "none"), ("a", "'"), ("a", "")):
        with pytest.raises(RejectedError):
            call(text, shell)


@pytest.mark.parametrize(("precision", "expected"), [(None, 7), (0.05, 7)])
def test_runs_at_least(home: Path, precision: float | None, expected: int) -> None:
    commands = request.commands(["true"], (), {})
    how = How(repetitions=2, precision=precision, least=7)
    options = Options(preset=plan.PRESET, device=None, seed=1, suite=plan.SUITE,
                      directory=str(home), meters=())  # fmt: skip
    assert (
        plan.make(options, commands, [Executions()], how, str(home)).protocol.repetitions
        == expected
    )


def test_an_outlier_is_reported() -> None:
    def outliers(*times: float) -> tuple[float, ...]:
        return Bench("x", {}, {"duration_s": times}, len(times), {}, None, None).outliers

    assert outliers(1.0, 1.1, 0.9, 1.05, 5.0) == (5.0,)
    assert outliers(1.0, 1.1, 0.9, 1.05, 1.2) == ()
    assert outliers(1.0, 1.0, 1.0) == () == outliers(1.0, 1.0, 1.0, 1.0)
    assert outliers(1.0, 9.0, 1.0) == (), "too few runs to know which one is unusual"
