"""Reads by which fio verifies its writes: they are at another time.

fio adds the time of a job's requests to the run time of each of its directions. So those of reads
and writes at the same time are equal. A verification after the writes counts as reads only.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from eeio_parsers.found import FoundPhase, FoundReport

_ONE_WAY = ("write", "randwrite", "trimwrite", "randtrimwrite")
"""Of `rw`: without reads."""
_OFF = ("0", "false", "none")
_UNEQUAL_SHARE, _UNEQUAL_S = 0.01, 0.01
"""By which the run times of two directions at the same time may differ: fio rounds them to ms."""


def is_one_way(rw: object) -> bool:
    """Whether a job of these directions has no other reads than those that verify."""
    return str(rw).partition(":")[0] in _ONE_WAY


def is_apart(
    run_times_s: Mapping[str, float], rw: object, options: Mapping[str, str] | None = None
) -> bool:
    """Whether a job read at other times than it wrote, by the run times of its directions. `rw` and
    `options` are None where the report does not state them."""
    if not {"read", "write"} <= run_times_s.keys():
        return False
    if is_one_way(rw):
        return True
    if options is not None and _is_verified(options):
        return True
    read_s, write_s = run_times_s["read"], run_times_s["write"]
    return abs(read_s - write_s) > _UNEQUAL_S + _UNEQUAL_SHARE * max(read_s, write_s)


def _is_verified(options: Mapping[str, str]) -> bool:
    return options.get("verify", "0") not in _OFF and options.get("do_verify", "1") not in _OFF


def separate(
    phases: Iterable[FoundPhase], apart: Collection[str]
) -> tuple[tuple[FoundPhase, ...], tuple[str, ...]]:
    """The phases, and notes. The reads of groups that are `apart` are groups of their own, and no
    repetitions of other reads."""
    every = []
    for phase in phases:
        if phase.group in apart and phase.operation == "read":
            options = {**phase.options, "reads": "apart from writes"}
            phase = replace(phase, group=f"{phase.group} reads", options=options)
        every.append(phase)
    notes = []
    for group in dict.fromkeys(apart):
        notes.append(f"group {group}: fio read and wrote at other times (verify): separate rows")
    return tuple(every), tuple(notes)


def runtimes_s(phases: Iterable[FoundPhase]) -> dict[str, float]:
    """Of the directions of a job or group."""
    return {str(phase.operation): phase.runtime_s or 0.0 for phase in phases}


def without_settings(phases: Sequence[FoundPhase], version: str | None, *notes: str) -> FoundReport:
    """The report of groups or jobs of which only the figures are there."""
    apart = []
    for group in dict.fromkeys(phase.group for phase in phases):
        if is_apart(runtimes_s(phase for phase in phases if phase.group == group), None):
            apart.append(group)
    of_groups, more = separate(phases, apart)
    return FoundReport(of_groups, version, notes=(*notes, *more))


def with_unsure_starts(
    phases: Sequence[FoundPhase], apart: Collection[str]
) -> tuple[FoundPhase, ...]:
    """Of a text, the groups that are `apart` with starts that are known about only: text does not
    state if fio verified between the writes (`verify_backlog`)."""
    unsure = []
    for phase in phases:
        if phase.group in apart:
            phase = replace(phase, starts_within_s=None)
            if phase.operation == "write" and phase.started_utc is not None:
                phase = replace(phase, started_utc=_before_reads(phase.started_utc, phases, phase))
        unsure.append(phase)
    return tuple(unsure)


def _before_reads(started_utc: str, phases: Sequence[FoundPhase], write: FoundPhase) -> str:
    """The start of writes that was computed from the end of the reads."""
    of_reads_s = []
    for phase in phases:
        if phase.group == write.group and phase.operation == "read":
            of_reads_s.append(phase.runtime_s or 0.0)
    started = datetime.fromisoformat(started_utc) - timedelta(seconds=sum(of_reads_s))
    return started.isoformat(timespec="milliseconds")
