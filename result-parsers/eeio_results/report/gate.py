"""The result of `eeio compare --fail-if`: lines for a log, a table, and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from eeio_limits.number_text import number
from eeio_results.comparison.gate import Gate, GateRow
from eeio_results.report.columns import NONE
from eeio_results.report.parts import Table

_SHOWN = 20


def summary(found: Gate) -> str:
    """`gate worse:5%:MB/s: 2 of 10 experiments worse, 1 not tested`."""
    worse, untested = found.of("worse"), found.of("not tested")
    return (
        f"gate worse:{100 * found.share:g}%:{found.metric}: {len(worse)} of {len(found.rows)} "
        f"experiments worse, {len(untested)} not tested"
    )


def remarks(found: Gate, of_sessions: bool) -> list[str]:
    """How large a change would have been detected, and the effect of the session."""
    lines = []
    if found.detectable is not None:
        median, most = found.detectable
        lines.append(
            f"one experiment that is {_percent(median)} worse (the noisiest: {_percent(most)}) "
            "would be detected in 9 of 10 such comparisons"
        )
        if most > found.share:
            lines[-1] += (
                f"; `eeio plan SUITE --detect {100 * found.share or 5:g}% --from {found.before}` "
                "shows the repetitions for less; for commands increase `eeio bench -r`"
            )
    if not of_sessions:
        lines.append(
            "one session each: changes between them (temperature, updates) affect the result; "
            "--sessions compares several"
        )
    return lines


def lines(found: Gate, of_sessions: bool) -> list[str]:
    """For the log of a CI job: the experiments that fail, by name, then the summary."""
    worse, untested = found.of("worse"), found.of("not tested")
    made = [
        f"worse in {found.after}: {row.label}: {_change(row)} {found.metric} "
        f"(adjusted p = {row.p_adjusted:.2g}, n = {row.n[0]} and {row.n[1]})"
        for row in worse[:_SHOWN]
    ]
    made += [f"not tested in {found.after}: {row.label}: {row.reason}" for row in untested[:_SHOWN]]
    hidden = len(worse) + len(untested) - len(made)
    made += [f"and {hidden} more"] if hidden else []
    if untested:
        made.append(
            "not tested: measure longer (--preset standard) or more often (--repetitions), or gate "
            "on a metric that is known better (worse:5%:MB/s)"
        )
    return [*made, summary(found), *remarks(found, of_sessions)]


def table(found: Gate, of_sessions: bool) -> Table:
    """One line per experiment, those that fail first."""
    failed_first = sorted(found.rows, key=lambda row: row.verdict == "passed")
    return Table(
        title=f"{found.after} against {found.before}: {summary(found)}",
        header=("Experiment", "Result", found.metric, "Adjusted p", "n", "Detectable", "Reason"),
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


def to_json(gates: Sequence[Gate]) -> list[dict[str, Any]]:
    """`gate` of `eeio compare --format json`: null values were not tested."""
    return [
        {
            **{name: getattr(found, name) for name in ("before", "after", "metric", "share")},
            "worse": len(found.of("worse")),
            "not_tested": len(found.of("not tested")),
            "detectable": found.detectable and list(found.detectable),
            "experiments": [asdict(row) for row in found.rows],
        }
        for found in gates
    ]


def junit(gates: Sequence[Gate]) -> str:
    """JUnit XML: a test suite per gate, a test case per experiment. `worse` is a failure, and
    `not tested` an error, because the gate does not pass then."""
    root = ElementTree.Element("testsuites", name="eeio")
    for found in gates:
        gate = f"worse:{100 * found.share:g}%:{found.metric}"
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=f"{found.after} against {found.before}, {gate}",
            tests=str(len(found.rows)),
            failures=str(len(found.of("worse"))),
            errors=str(len(found.of("not tested"))),
        )
        for row in found.rows:
            case = ElementTree.SubElement(suite, "testcase", classname="eeio", name=row.label)
            if row.verdict != "passed":
                kind = "failure" if row.verdict == "worse" else "error"
                ElementTree.SubElement(case, kind, message=_why(found, row))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def workflow_commands(gates: Sequence[Gate]) -> list[str]:
    """Annotations of GitHub Actions: an error per experiment that fails."""
    return [
        f"::error title=eeio {row.verdict}::{_escaped(f'{row.label}: {_why(found, row)}')}"
        for found in gates
        for row in found.rows
        if row.verdict != "passed"
    ]


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _why(found: Gate, row: GateRow) -> str:
    if row.verdict == "not tested":
        return row.reason or "not tested"
    return (
        f"{_change(row)} {found.metric}, adjusted p = {row.p_adjusted:.2g}, "
        f"n = {row.n[0]} and {row.n[1]}"
    )


def _change(row: GateRow) -> str:
    return NONE if row.change is None else f"{100 * row.change:+.1f} %"


def _percent(share: float) -> str:
    return f"{number(100 * share)} %" if share < 10 else "more than 1000 %"
