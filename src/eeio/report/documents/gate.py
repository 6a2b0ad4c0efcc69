"""The result of `eeio compare --fail-if`: lines for a log, a table, and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal
from xml.etree import ElementTree

from eeio.comparison.gate import Gate, GateRow
from eeio.report.campaign.columns import NONE
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number

_SHOWN = 20

Level = Literal["pass", "fail"]
"""The effect of an experiment that is not decided on the gate: `--undecided`."""


def fails(row: GateRow, undecided: Level) -> bool:
    """Whether the gate fails by this experiment."""
    return row.verdict in ("worse", "not tested") or (
        row.verdict == "not decided" and undecided == "fail"
    )


def name(found: Gate) -> str:
    """The gate as it was requested: `worse:3%:J/GB`, or with `--detect`."""
    requested = f"worse:{100 * found.share:g}%:{found.metric}"
    if found.detect is None:
        return requested
    return f"{requested}, detect {100 * found.detect:g}%"


def summary(found: Gate, undecided: Level) -> str:
    """The verdict in one line: `gate worse:5%:MB/s: failed: 2 of 10 experiments worse by more than
    5 %, 1 not decided, 1 not tested`."""
    worse, open_ = found.of("worse"), found.of("not decided")
    untested = found.of("not tested")
    verdict = "passed"
    if worse:
        verdict = "failed"
    elif untested or open_:
        verdict = "not decided"
    failing = ""
    if open_ and undecided == "fail":
        failing = " (which fails the gate)"
    return (
        f"gate {name(found)}: {verdict}: {len(worse)} of {len(found.rows)} experiments worse by "
        f"more than {100 * found.share:g} %, {len(open_)} not decided{failing}, "
        f"{len(untested)} not tested"
    )


def remarks(found: Gate, of_sessions: bool) -> list[str]:
    """The error rates, how large a change would have been found, and the effect of the session."""
    lines = [error_rates(found)]
    if found.detectable is not None:
        median, most = found.detectable
        lines.append(
            f"one experiment that is {_percent(median)} worse (the noisiest: {_percent(most)}) "
            "would be found in 9 of 10 such comparisons"
        )
        if most > found.to_detect:
            lines[-1] += _how_to_detect(found)
    if found.only_after:
        shown = found.only_after[:_SHOWN]
        more = len(found.only_after) - len(shown)
        lines.append(
            f"not in {found.before}, so not in the gate: {', '.join(shown)}"
            + (f" and {more} more" if more else "")
        )
    if not of_sessions:
        lines.append(
            "one session each: changes between them (temperature, updates) affect the result; "
            "--sessions compares several"
        )
    return lines


def _how_to_detect(found: Gate) -> str:
    detect = f"{100 * found.to_detect:g}"
    if found.bench_runs is not None:
        return f"; `eeio bench -r {found.bench_runs}` before and after finds {detect} %"
    return (
        f"; `eeio plan SUITE --detect {detect}% --fail-if "
        f"worse:{100 * found.share:g}%:{found.metric} --from {found.before}` shows the "
        f"repetitions for {detect} %"
    )


def error_rates(found: Gate) -> str:
    """What the verdicts of the gate may be wrong in."""
    passed = found.share if found.detect is None else found.detect
    return (
        f"worse: surely by more than {100 * found.share:g} % (a comparison without such a change "
        f"has one in at most 5 of 100); passed: surely by less than {100 * passed:g} % (an "
        "experiment that is worse by that or more passes in at most 5 of 100); not decided: neither"
    )


def lines(found: Gate, of_sessions: bool, undecided: Level) -> list[str]:
    """For the log of a CI job: the verdict, then by name the experiments that did not pass."""
    worse, open_ = found.of("worse"), found.of("not decided")
    untested = found.of("not tested")
    made = [f"worse in {found.after}: {row.label}: {_why(found, row)}" for row in worse[:_SHOWN]]
    for row in untested[:_SHOWN]:
        made.append(f"not tested in {found.after}: {row.label}: {row.reason}")
    if undecided == "fail":
        made += [
            f"not decided in {found.after}: {row.label}: {_why(found, row)}"
            for row in open_[:_SHOWN]
        ]
    hidden = sum(fails(row, undecided) for row in found.rows) - len(made)
    if hidden:
        made.append(f"and {hidden} more")
    if untested:
        made.append(
            "not tested: repair what is named, measure longer (--preset standard) or more often "
            "(--repetitions), or gate on a metric that is known better (worse:5%:MB/s)"
        )
    return [summary(found, undecided), *made, *remarks(found, of_sessions)]


_ORDER = ("worse", "not tested", "not decided", "passed")


def table(found: Gate, of_sessions: bool) -> Table:
    """One line per experiment, those that fail first."""
    failed_first = sorted(found.rows, key=lambda row: _ORDER.index(row.verdict))
    return Table(
        title=f"{found.after} against {found.before}: gate {name(found)}",
        header=("Experiment", "Verdict", found.metric, "Adjusted p", "n", "Detectable", "Reason"),
        rows=tuple(
            (
                row.label,
                row.verdict,
                _change(row),
                NONE if row.p_adjusted is None else f"{row.p_adjusted:.2g}",
                NONE if row.n == (0, 0) else f"{row.n[0]}, {row.n[1]}",
                NONE if row.detectable is None else _percent(row.detectable),
                row.reason or "",
            )
            for row in failed_first
        ),
        numeric=frozenset({2, 3, 4, 5}),
        note="; ".join(remarks(found, of_sessions)),
    )


def to_json(gates: Sequence[Gate], undecided: Level) -> list[dict[str, Any]]:
    """`gate` of `eeio compare --format json`: null values were not tested."""
    return [
        {
            **{
                field: getattr(gate, field)
                for field in ("before", "after", "metric", "share", "detect")
            },
            "verdict": summary(gate, undecided),
            "failed": any(fails(row, undecided) for row in gate.rows),
            "worse": len(gate.of("worse")),
            "not_decided": len(gate.of("not decided")),
            "not_tested": len(gate.of("not tested")),
            "detectable": gate.detectable and list(gate.detectable),
            "only_after": list(gate.only_after),
            "experiments": list(map(asdict, gate.rows)),
        }
        for gate in gates
    ]


def junit(gates: Sequence[Gate], undecided: Level) -> str:
    """JUnit XML: a test suite per gate, a test case per experiment. `worse` is a failure, and
    `not tested` an error, because the gate does not pass then. `not decided` is an error where it
    fails the gate, else skipped. The output of each case has the change and the detectable one."""
    root = ElementTree.Element("testsuites", name="eeio")
    for gate in gates:
        open_ = len(gate.of("not decided"))
        failing = 0
        if undecided == "fail":
            failing = open_
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=f"{gate.after} against {gate.before}, {name(gate)}",
            tests=str(len(gate.rows)),
            failures=str(len(gate.of("worse"))),
            errors=str(len(gate.of("not tested")) + failing),
            skipped=str(open_ - failing),
        )
        for row in gate.rows:
            case = ElementTree.SubElement(suite, "testcase", classname="eeio", name=row.label)
            kind = _junit_kind(row, undecided)
            if kind is not None:
                ElementTree.SubElement(case, kind, message=_why(gate, row))
            ElementTree.SubElement(case, "system-out").text = _why(gate, row)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _junit_kind(row: GateRow, undecided: Level) -> str | None:
    if row.verdict == "worse":
        return "failure"
    if fails(row, undecided):
        return "error"
    if row.verdict == "not decided":
        return "skipped"
    return None


def workflow_commands(gates: Sequence[Gate], undecided: Level) -> list[str]:
    """Annotations of GitHub Actions: an error per experiment that fails the gate, and a warning per
    experiment that is not decided and does not fail it."""
    commands = []
    for gate in gates:
        for row in gate.rows:
            if row.verdict != "passed":
                kind = "warning"
                if fails(row, undecided):
                    kind = "error"
                message = _escaped(f"{row.label}: {_why(gate, row)}")
                commands.append(f"::{kind} title=eeio {row.verdict}::{message}")
    return commands


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _why(found: Gate, row: GateRow) -> str:
    """The change of an experiment with its test, or why it was not tested."""
    if row.p_adjusted is None:
        return row.reason or "not tested"
    text = (
        f"{_change(row)} {found.metric}, adjusted p = {row.p_adjusted:.2g}, "
        f"n = {row.n[0]} and {row.n[1]}"
    )
    if row.verdict != "worse" and row.detectable is not None:
        text += f", a change of {_percent(row.detectable)} would be found in 9 of 10"
    if row.reason is None:
        return text
    return f"{text}: {row.reason}"


def _change(row: GateRow) -> str:
    if row.change is None:
        return NONE
    return f"{100 * row.change:+.1f} %"


def _percent(share: float) -> str:
    if share < 10:
        return f"{number(100 * share)} %"
    return "more than 1000 %"
