"""hyperfine's text, JSON, Markdown and CSV."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from eeio_parsers.format import Format
from eeio_parsers.found import (
    FoundPhase,
    FoundReport,
    figure,
    json_of,
    none_found,
    parts,
)
from eeio_parsers.rules import FoundFile, Rules

TEXT = re.compile(r"^[ \t]{0,9}Benchmark (?:#)?\d{1,9}: ([^\n]{1,999})$", re.M)
_SPAN = r"\s{1,9}([\d.]{1,20}) (µs|ms|s|h)"
TIMES = re.compile(r"^[ \t]{1,99}Time \((?:mean ± σ|abs ≡)\):", re.M)
_TIME_LINE = re.compile(
    rf"^\s{{1,99}}Time \((?:mean ± σ|abs ≡)\):{_SPAN}(?: ±{_SPAN})?"
    rf"(?:\s{{1,9}}\[User:{_SPAN}, System:{_SPAN}\])?",
    re.M,
)
_RANGE_LINE = re.compile(rf"^\s{{1,99}}Range \(min … max\):{_SPAN} …{_SPAN}", re.M)


def read_text(text: str) -> Iterator[FoundReport]:
    """What it prints on a terminal."""
    units = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "h": 3600.0}

    def seconds(line: re.Match[str] | None, *names: str) -> dict[str, float]:
        if line is None:
            return {}
        spans = zip(names, line.groups()[::2], line.groups()[1::2], strict=True)
        seconds = {}
        for name, value, unit in spans:
            if value:
                seconds[name] = figure(value) * units[unit]
        return seconds

    # Notes may quote only the times, below words of their own.
    named = TEXT.search(text) is not None
    for part, begin in parts(text, TEXT if named else TIMES):
        command = TEXT.match(part)
        found = seconds(_TIME_LINE.search(part), "mean", "stddev", "user", "system")
        found |= seconds(_RANGE_LINE.search(part), "min", "max")
        if "mean" not in found:
            raise none_found("hyperfine", "a benchmark without its mean time: it was ended before")
        name = "hyperfine"
        if command:
            name = command[1].strip()[:200]
        phase = FoundPhase(
            name=name,
            operation=None,
            runtime_s=found["mean"],
            metrics={f"time_{name}_s": value for name, value in found.items()},
        )
        notes: tuple[str, ...] = ()
        if further := len(TIMES.findall(part)) - 1:
            notes = (f"{further} further times without a line `Benchmark` are not read",)
        yield FoundReport((phase,), begins_at=begin, notes=notes)


def read_json(text: str) -> Iterator[FoundReport]:
    """`--export-json`: the time of commands; they report no bytes."""
    try:
        results = json_of(text)["results"]
        phases = tuple(
            FoundPhase(
                name=str(result["command"])[:200],
                operation=None,
                group=str(index),
                runtime_s=figure(result["mean"]),
                metrics={
                    f"time_{name}_s": figure(result[name])
                    for name in ("mean", "stddev", "median", "user", "system", "min", "max")
                    if result.get(name) is not None
                },
                error=_failed(result.get("exit_codes", ())),
            )
            for index, result in enumerate(results)
        )
    except (ValueError, KeyError, TypeError) as error:
        raise none_found("hyperfine", f"the JSON is damaged or cut off: {error!r:.80}") from error
    yield FoundReport(phases)


def _failed(exit_codes: Sequence[int | None]) -> str | None:
    """Of runs that failed (`--ignore-failure`); None is the code of one that a signal ended."""
    codes = [code for code in exit_codes if code != 0]
    if not codes:
        return None
    first = "was ended by a signal"
    if codes[0] is not None:
        first = f"had the exit code {codes[0]}"
    return f"{len(codes)} of {len(exit_codes)} runs failed, the first {first}"


MARKDOWN = re.compile(
    # Formatters align the columns with blanks.
    r"^\| {1,99}Command {1,999}\|(?: [^|\n]{1,99} \|){0,9} {1,99}Mean \[(ms|s)\] {1,99}\| {1,99}"
    # Older versions have one column for both.
    r"(?:Min \[\1\] {1,99}\| {1,99}Max|Min…Max) \[\1\] {1,99}\|"
    r"(?: {1,99}Relative {1,99}\|)?[ \t]*$",
    re.M,
)


def read_markdown(text: str) -> Iterator[FoundReport]:
    """`--export-markdown`: a row for each command; columns of parameters are before the times."""
    for part, begin in parts(text, MARKDOWN):
        lines = part.splitlines()
        names = _cells(lines[0])
        unit_s = 1.0
        if "Mean [ms]" in names:
            unit_s = 1e-3
        phases: list[FoundPhase] = []
        for line in lines[2:]:
            cells = _cells(line)
            if len(cells) != len(names):
                break
            row = dict(zip((name.partition(" [")[0] for name in names), cells, strict=True))
            if "Min…Max" in row:
                row["Min"], _, row["Max"] = row.pop("Min…Max").partition("…")
            # Authors print the best in bold.
            row |= {name: row[name].strip("* ") for name in ("Mean", "Min", "Max")}
            mean, _, deviation = row["Mean"].partition(" ± ")
            found = {"mean": mean, "stddev": deviation, "min": row["Min"], "max": row["Max"]}
            known = ("Command", "Mean", "Min", "Max", "Relative")
            phases.append(
                FoundPhase(
                    name=row["Command"].strip("`").replace("\\|", "|")[:200],
                    operation=None,
                    group=str(len(phases)),
                    runtime_s=figure(mean) * unit_s,
                    metrics={f"time_{k}_s": figure(v) * unit_s for k, v in found.items() if v},
                    options={k: v for k, v in row.items() if k not in known},
                )
            )
        if not phases:
            raise none_found("hyperfine", "its table has no row")
        yield FoundReport(tuple(phases), begins_at=begin)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


CSV = re.compile(
    r"^command {0,999},"
    + " {0,99},".join(("mean", "stddev", "median", "user", "system", "min", "max"))
    + r" {0,99}(?:,|\r?$)",
    re.M,
)


def read_csv(text: str) -> Iterator[FoundReport]:
    """`--export-csv`: seconds, and a column for each parameter."""
    begin = CSV.search(text)
    rows = csv.DictReader(io.StringIO(text[begin.start() if begin else 0 :], newline=""))
    times = ("mean", "stddev", "median", "user", "system", "min", "max")
    phases: list[FoundPhase] = []
    for index, cells in enumerate(rows):
        if None in cells or None in cells.values():
            raise none_found("hyperfine", "cut off in a row of its CSV")
        row = {name.strip(): cell.strip() for name, cell in cells.items()}
        phases.append(
            FoundPhase(
                name=row["command"][:200],
                operation=None,
                group=str(index),
                runtime_s=figure(row["mean"]),
                metrics={f"time_{name}_s": figure(row[name]) for name in times if row[name]},
                options={k: v for k, v in row.items() if k not in ("command", *times)},
            )
        )
    if not phases:
        raise none_found("hyperfine", "its CSV has no row")
    yield FoundReport(tuple(phases))


_EXPORTS = ("json", "csv", "markdown")
"""From the most to the fewest digits."""


def _reject_exports(files: Sequence[FoundFile]) -> None:
    """A run that was exported in several forms, which differ in their digits."""
    exported: dict[tuple[Path, str, tuple[str, ...]], FoundFile] = {}
    exports = [file for file in files if file.tool == "hyperfine" and file.form in _EXPORTS]
    for file in sorted(exports, key=lambda file: _EXPORTS.index(file.form or "")):
        commands = tuple(phase.name for report in file.reports for phase in report.phases)
        first = exported.setdefault((file.path.parent, file.path.stem, commands), file)
        if commands and first is not file:
            file.reject(f"repeats the results of {first.path.name}")


RULES = {"hyperfine": Rules(reject_repeated=_reject_exports)}
FORMATS = (
    Format("hyperfine", "json", read_json, keys=("results", "command", "mean"), lists_again=True),
    Format("hyperfine", "text", read_text, begins=TEXT, lists_again=True),
    Format("hyperfine", "text", read_text, begins=TIMES, lists_again=True),
    Format("hyperfine", "markdown", read_markdown, begins=MARKDOWN, lists_again=True),
    Format("hyperfine", "csv", read_csv, begins=CSV, lists_again=True),
)
