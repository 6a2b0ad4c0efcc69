"""The output of `eeio bench`: time, W, J, bytes, MB/J, and which command takes more."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from eeio.comparison.commands import (
    ATTRIBUTED,
    COUNTS,
    FIGURES,
    Bench,
    Comparison,
    benches,
    comparisons,
    is_user_only,
)
from eeio.record.publication import short_stamp, stamp_of, warnings_of
from eeio.record.run import DEMO, Phase, mark
from eeio.record.store import Campaign
from eeio.report.campaign.characterized import Report
from eeio.report.campaign.columns import NONE, spread
from eeio.report.campaign.tables import tables
from eeio.report.document import Document, render_html
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number
from eeio.units.sizes import MB, percent, prefixed

if TYPE_CHECKING:
    from eeio.report.page.panels import Panel

SCHEMA_VERSION = 1
_MOST_LISTED = 5
_MOSTLY = 0.9
"""A command with more of the processors' busy time has the machine for itself."""

_NAMES = {"duration_s": "time", "durable_s": "time until durable", "energy_j": "energy"}


def document(
    campaign: Campaign, found: Sequence[Bench], compared: Sequence[Comparison]
) -> Document:
    """The answer of `eeio bench`: a table, missing figures with their reasons, comparisons."""
    return Document(
        title=f"eeio bench: {campaign.name}",
        answer=tuple(_which_take_more(found, compared)),
        parts=_parts([_table(found)], _not_there_and_remarks(found)),
        data=lambda: _to_json(campaign, found, compared),
        records=lambda: list(map(_record, found)),
        warnings=tuple(warnings_of(campaign)),
        charts=lambda: _charts([(campaign, found)]),
    )


def report_page(report: Report) -> str:
    """The page of campaigns that are all of commands: the answers of `eeio bench`, then the tables
    of the report that have rows. Needs scipy and Jinja2."""
    of_each = list(zip(report.campaigns, map(benches, report.campaigns), strict=True))
    answers: list[str] = []
    commands: list[Table] = []
    remarks: list[str] = []
    for campaign, benches_of in of_each:
        answers += _which_take_more(benches_of, comparisons(benches_of))
        remarks += _not_there_and_remarks(benches_of)
        of = ""
        if len(of_each) > 1:
            of = f" of {campaign.name}"
        commands.append(replace(_table(benches_of), title=f"Commands{of}"))
    # The tables of experiments would repeat those of commands.
    others = [table for table in tables(report) if table.rows and "Operation" not in table.header]
    names = ", ".join(map(attrgetter("name"), report.campaigns))
    return render_html(
        Document(
            title=f"Commands: {names}",
            answer=tuple(answers),
            parts=(*_parts(commands, remarks), *others),
            data=dict,
            warnings=tuple(dict.fromkeys(report.warnings)),
            charts=lambda: _charts(of_each),
        )
    )


def is_of_commands(report: Report) -> bool:
    """Whether every experiment is a command of `eeio bench`."""
    rows = [row.experiment for row in report.rows if row.experiment is not None]
    return bool(rows) and all(experiment.is_command for experiment in rows)


def _charts(of_each: Sequence[tuple[Campaign, Sequence[Bench]]]) -> "Sequence[Panel]":
    from eeio.report.page import bench

    commands: list[Bench] = []
    for campaign, benches_of in of_each:
        of = ""
        if len(of_each) > 1:
            of = f" ({campaign.name})"
        for one in benches_of:
            commands.append(replace(one, label=one.label + of))
    stamped = stamp_of(campaign for campaign, _ in of_each)
    return bench.charts(commands, short_stamp([stamped]))


def _to_json(
    campaign: Campaign, found: Sequence[Bench], compared: Sequence[Comparison]
) -> dict[str, Any]:
    """The contract of `eeio bench --format json`: each figure is its quartiles, or null with the
    reason in `reasons`; `reason` is the first of these."""
    return {
        "schema_version": SCHEMA_VERSION,
        "campaign": campaign.name,
        "warnings": warnings_of(campaign),
        "commands": list(map(_command_json, found)),
        "comparisons": list(map(asdict, compared)),
    }


def _record(one: Bench) -> dict[str, Any]:
    """A command: medians and quartiles."""
    record: dict[str, Any] = {
        "command": one.label,
        "n": one.n,
        "energy_kind": one.kind,
        "not_durable": one.not_durable,
    }
    for name in FIGURES:
        of = one.quartiles(name)
        record |= {
            f"{name}_{edge}": None if of is None else getattr(of, edge)
            for edge in ("median", "q1", "q3")
        }
    return record


def hyperfine_json(found: Sequence[Bench]) -> str:
    """The file that hyperfine's `--export-json` writes, so that scripts which plot it read ours;
    `times` are of one execution, the mean of each run. Adds the median energy, which such scripts
    ignore."""
    results = []
    for bench in found:
        times = bench.values("duration_s")
        if not times:
            continue
        user, system = (
            statistics.fmean(p.metrics[name] / p.metrics["executions"] for p in bench.phases)
            for name in ("user_s", "system_s")
        )
        energy = bench.quartiles("energy_j")
        results.append(
            {
                "command": bench.label,
                "mean": statistics.fmean(times),
                "stddev": statistics.stdev(times) if len(times) > 1 else None,
                "median": statistics.median(times),
                "user": user,
                "system": system,
                "min": min(times),
                "max": max(times),
                "times": list(times),
                "exit_codes": list(map(_exit_code, bench.phases)),
                **({"parameters": dict(bench.parameters)} if bench.parameters else {}),
                f"{mark(bench.kind or '').lower().replace(' ', '_')}energy_j": None
                if energy is None or bench.not_durable
                else energy.median,
            }
        )
    return json.dumps({"results": results}, indent=2) + "\n"


def _exit_code(phase: Phase) -> int:
    """The highest of its executions."""
    codes = (name.removeprefix("exit_code_") for name, count in phase.metrics.items() if count)
    return max((int(code) for code in codes if code.isdigit()), default=0)


def _command_json(one: Bench) -> dict[str, Any]:
    of_figures = {name: one.quartiles(name) for name in FIGURES}
    figures = {name: None if of is None else asdict(of) for name, of in of_figures.items()}
    return {
        "command": one.label,
        "text": one.text,
        "parameters": dict(one.parameters),
        "n": one.n,
        "outliers_s": list(one.outliers),
        "executions": int(sum(phase.metrics["executions"] for phase in one.phases)),
        "power_domain": one.domain,
        "meter": one.meter,
        "energy_kind": one.kind,
        "not_durable": one.not_durable,
        "remarks": list(one.remarks),
        **figures,
        "counted_in_user_mode_only": is_user_only(one.phases),
        "exit_codes": {str(code): count for code, count in sorted(one.exit_codes.items())},
        "reason": next(iter(one.missing.values()), None),
        "reasons": one.missing,
        "doubts": list(one.doubts),
    }


def _table(found: Sequence[Bench]) -> Table:
    rows = []
    is_counted = any(bench.values(name) for bench in found for name in COUNTS)
    count_headers: tuple[str, ...] = ()
    if is_counted:
        count_headers = _COUNT_HEADERS
    for bench in found:
        about = []
        if bench.domain not in (None, "system"):
            about = [bench.domain]
        if bench.kind == DEMO:
            about.append(DEMO)
        if bench.kind is not None and bench.not_durable is not None:
            about.append("not durable")
        domain = ""
        if about:
            domain = f" ({', '.join(map(str, about))})"
        joules, efficiency = _plain(bench, "energy_j"), _plain(bench, "efficiency_bytes_per_j", MB)
        if bench.kind == DEMO:
            joules, efficiency = (
                text if text == NONE else f"{text} ({DEMO})" for text in (joules, efficiency)
            )
        rows.append(
            (
                bench.label,
                _prefixed(bench, "duration_s", "s"),
                _plain(bench, "power_w") + domain,
                joules,
                efficiency,
                _prefixed(bench, "bytes_device_read", "B"),
                _prefixed(bench, "bytes_device_written", "B"),
                _prefixed(bench, "durable_s", "s"),
                _prefixed(bench, "cpu_s", "s"),
                _prefixed(bench, "memory_peak_bytes", "B"),
                *_counts(bench, is_counted),
                str(bench.n),
            )
        )
    return Table(
        title="Commands",
        header=(
            "Command",
            "Time",
            "W",
            "J",
            "MB/J",
            "Read",
            "Written",
            "Until durable",
            "CPU",
            "Memory",
            *count_headers,
            "n",
        ),
        rows=tuple(rows),
        numeric=frozenset(range(1, 11 + len(count_headers))),
        note="medians of one execution, with quartiles where they differ; bytes read and written "
        "at the drive by the command's processes, from the kernel; W and J of writes until "
        "they are durable",
    )


_COUNT_HEADERS = ("Instructions", "Cycles", "Context switches")


def _counts(bench: Bench, is_counted: bool) -> tuple[str, ...]:
    """Cells of counters and context switches; none if no command has them."""
    if not is_counted:
        return ()
    of_user = ""
    if is_user_only(bench.phases):
        of_user = " (user)"
    cells = []
    for name in (*COUNTS, "context_switches"):
        text = _plain(bench, name)
        if name in COUNTS and text != NONE:
            text += of_user
        cells.append(text)
    return tuple(cells)


def _parts(
    commands: Sequence[Table], remarks: Sequence[str]
) -> tuple[Table | tuple[str, ...], ...]:
    return (*commands, *([tuple(remarks)] if remarks else []))


def _not_there_and_remarks(found: Sequence[Bench]) -> list[str]:
    """The missing figures, each reason once, and remarks."""
    lines = _why_missing(found)
    for bench in found:
        lines.extend(_remarks(bench))
        lines.extend(_attribution(bench))
    return lines + [_outliers(bench) for bench in found if bench.outliers]


def _which_take_more(found: Sequence[Bench], compared: Sequence[Comparison]) -> list[str]:
    """Which command takes more time, then which takes more energy."""
    is_demo = any(bench.kind == DEMO for bench in found)
    lines = []
    for metric, pair in product(_NAMES, compared):
        if pair.ratio and pair.metric == metric:
            demo = ""
            if is_demo and metric == "energy_j":
                demo = " (demo)"
            lines.append(f"{_which_takes_more(pair, pair.ratio)}{demo}")
    return lines


def _remarks(one: Bench) -> list[str]:
    reasons = " ".join(one.missing.values())
    lines = []
    for text in one.remarks:
        if text not in reasons:
            lines.append(f"{one.label}: {text}")
    if one.kind is not None and one.not_durable is not None:
        lines.append(f"not durable: W and J of {one.label} end when it returned: {one.not_durable}")
    return lines + [f"doubtful: W and J of {one.label}: {reason}" for reason in one.doubts]


def _attribution(one: Bench) -> list[str]:
    """Where others used the machine noticeably: the command's share of its work and energy."""
    share, joules = one.quartiles("processor_share"), one.quartiles("attributed_j")
    if share is None or share.median > _MOSTLY:
        return []
    text = f"attribution: {one.label} took {percent(share.median)} % of the processors' busy time"
    if joules is not None:
        demo = ""
        if one.kind == DEMO:
            demo = " (demo)"
        text += (
            f"; by that share, {number(joules.median)} J{demo} of the {one.domain}'s energy are "
            "its own. This is no measurement: the rest of the machine works for others"
        )
    return [text]


def _outliers(one: Bench) -> str:
    times = ", ".join(map(_time, one.outliers))
    if len(one.outliers) > _MOST_LISTED:
        times = f"{_time(min(one.outliers))} to {_time(max(one.outliers))}"
    return (
        f"outliers: {len(one.outliers)} of {one.n} runs of {one.label} took {times}, far from the "
        "median. Other work on the machine or a cold cache may cause this: repeat on a quiet "
        "machine, or use --warmup or --prepare"
    )


_LABELS = {
    "duration_s": "time",
    "cpu_s": "CPU time",
    "bytes_device_read": "bytes read at the drive",
    "bytes_device_written": "bytes written at the drive",
    "bytes_asked": "requested bytes",
    "memory_peak_bytes": "peak memory",
    "energy_j": "energy",
    "power_w": "power",
    "efficiency_bytes_per_j": "MB/J",
    "durable_s": "time until durable",
    "instructions": "instructions",
    "cycles": "cycles",
    "context_switches": "context switches",
    "processor_share": "share of the processors' busy time",
    "drive_share": "share of the drive's bytes",
    "attributed_j": "attributed energy",
}
"""Of each of FIGURES, in a sentence."""


def _why_missing(found: Sequence[Bench]) -> list[str]:
    """Each reason once, with its figures and commands."""
    missing: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for bench in found:
        for name, reason in bench.missing.items():
            # Few machines have them: their reason is in the JSON.
            if name in (*COUNTS, *ATTRIBUTED):
                continue
            names, labels = missing.setdefault(reason, ({}, {}))
            names.setdefault(_LABELS[name])
            labels.setdefault(bench.label)
    lines = []
    for reason, (names, labels) in missing.items():
        whose = ""
        if len(labels) != len(found):
            whose = f" of {'; '.join(labels)}"
        lines.append(f"not measured: {', '.join(names)}{whose}: {reason}")
    return lines


def _which_takes_more(pair: Comparison, ratio: float) -> str:
    a, b, interval = pair.a, pair.b, pair.interval
    if ratio < 1:
        a, b, ratio = b, a, 1 / ratio
        interval = None if interval is None else (1 / interval[1], 1 / interval[0])
    limits = ""
    if interval is not None:
        limits = f" [{number(interval[0])} - {number(interval[1])}]"
    verdict = {"none above": "; no difference above 5 %", "open": "; not decided"}
    return (
        f"{a} takes {number(ratio)}{limits} times the {_NAMES[pair.metric]} of {b}"
        f"{verdict.get(pair.verdict, '')}"
    )


def _plain(one: Bench, name: str, unit: float = 1.0) -> str:
    return spread(one.quartiles(name), unit)


def _prefixed(one: Bench, name: str, unit: str) -> str:
    of = one.quartiles(name)
    if of is None:
        return NONE
    factor, unit = prefixed(of.median, unit) if of.median else (1.0, unit)
    return f"{spread(of, factor)} {unit}"


def _time(time_s: float) -> str:
    factor, unit = prefixed(time_s, "s")
    return f"{number(time_s / factor)} {unit}"
