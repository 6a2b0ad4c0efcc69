"""IO500's screen and result_summary.txt: a line for each phase."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eeio_parsers.format import Format
from eeio_parsers.found import FoundPhase, FoundReport, figure, first_group, none_found
from eeio_parsers.io500.run import RESULT
from eeio_parsers.rules import FoundFile, Rules


def read_io500(text: str) -> Iterator[FoundReport]:
    """`result_summary.txt`: a rate and a time for each phase. A file may list several runs, whose
    settings it does not report."""
    phases = []
    times: Counter[str] = Counter()
    seen: set[tuple[str, ...]] = set()
    unscored = dict[str, None]()
    for line in RESULT.finditer(text):
        if not line["kind"].startswith("RESULT"):
            if not figure(line["rate"]):
                continue  # of no I/O: `timestamp`, or a phase that did not run
            unscored[line["name"]] = None
        # IO500 of 2017 lists all results once more at the end.
        if (key := line.group("label", "name", "rate", "unit", "seconds")) in seen:
            continue
        seen.add(key)
        name, rate, unit, seconds = line["name"], line["rate"], line["unit"], line["seconds"]
        # IO500 of 2017 divided MiB/s by 1024 and named that GB/s.
        bandwidth = figure(rate) * (1 << 30)
        moves = unit in ("GiB/s", "GB/s")
        phase = FoundPhase(
            name=" ".join((*line["label"].strip(" \t:").split(), name.replace("_", "-"))),
            group=str(times[name]),
            operation=_operation(name) if moves else "metadata",
            access_pattern=_io500_pattern(name) if moves else "none",
            runtime_s=figure(seconds),
            error=f"IO500 marks {name} as invalid" if _is_invalid(line) else None,
        )
        times[name] += 1
        phases.append(
            replace(phase, bandwidth_bytes_per_s=bandwidth)
            if moves
            else replace(phase, iops=figure(rate) * 1000)
        )
    if not phases:
        raise none_found("IO500", "no line [RESULT] with a rate and a time")
    version = re.search(r"^IO500 version (\S{1,300})", text, re.M)
    names = ", ".join(unscored)
    notes = []
    if unscored:
        notes = [f"IO500 measured these phases without a score: {names}"]
    if _SCORE.search(text) is None:
        notes.append("IO500 printed no score: it did not reach its end, or lines are missing")
    if _INVALID_SCORE in text:
        notes.append(f"IO500 marks the score of this run as invalid: {_INVALID_SCORE}")
    yield FoundReport(tuple(phases), first_group(version), notes=tuple(notes))


_INVALID_SCORE = "[SCORE INVALID]"
_SCORE = re.compile(r"\[SCORE[^\]\n]{0,40}\]|\btot(?:al)?[ _]score\b", re.I)


def _is_invalid(line: re.Match[str]) -> bool:
    """`[RESULT-invalid]` of 2020, and `[INVALID]` behind the time since then."""
    return line["kind"].endswith("invalid") or line["mark"] is not None


def _operation(name: str) -> str:
    if "write" in name:
        return "write"
    return "read"


def _io500_pattern(name: str) -> str | None:
    if "rnd" in name:
        return "random"
    if "easy" in name:
        return "sequential"
    return None


def reject_ini(text: str) -> Iterator[FoundReport]:
    """`result.txt` has the scores of the phases, and their times with all that is around them."""
    raise none_found("IO500", "a result.txt: import the result_summary.txt next to it")


def _reject_summaries(files: Sequence[FoundFile]) -> None:
    """Those of IO500 with the results of its tools next to them."""
    detailed = {
        file.path.parent for file in files if file.tool in ("ior", "mdtest") and file.reports
    }
    for file in files:
        if file.tool == "io500" and file.path.parent in detailed:
            file.reject("its results are in the ior and mdtest files next to it")


RULES = {"io500": Rules(reject_repeated=_reject_summaries)}
FORMATS = (
    Format(
        "io500", "text", read_io500, begins=re.compile(r"^[^\[\n]{0,40}\[RESULT\w{0,80}\]", re.M)
    ),
    Format("io500", "ini", reject_ini, begins=re.compile(r"^version\s{0,99}= io500-", re.M)),
)
