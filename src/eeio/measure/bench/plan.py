"""A campaign of commands: each is an experiment of the level `application`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.errors import RejectedError
from eeio.machine import caches
from eeio.measure.bench.request import Command
from eeio.measure.campaign import shared_process
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.run_order import in_blocks, in_rounds
from eeio.measure.profiles import profile as profiles
from eeio.record.design import AdaptiveProtocol, Options, PlannedExperiment, Protocol
from eeio.record.run import CacheLayers, Experiment

SUITE = "bench"
PROFILE = "eeio-command-1.0.0"
PRESET = "standard"
_BLOCKS = 10
"""Blocks of runs of each command, if several commands share processes."""
_MOST_IN_BLOCK = 1000


@dataclass(frozen=True)
class How:
    """How commands are run: seconds, texts for the shell (None: nothing), whether the page cache is
    emptied before each run, and repeated until `precision` is reached (None: a fixed number)."""

    repetitions: int = 10
    """With `precision` those before the first look at the values, 4 at most unless `least`."""
    prepare: str | None = None
    conclude: str | None = None
    cold: bool = False
    stdin: str | None = None
    ignore_failure: bool = False
    timeout_s: float = 3600.0
    settle_s: float = 0.0
    idle_s: float = 0.0
    precision: float | None = None
    shortest_s: float = 0.2
    """Of a run; commands that are done sooner are repeated inside one."""
    least: int | None = None
    """Runs of each command at least, also with `precision`."""

    def check(self) -> None:
        """RejectedError for invalid values."""
        if self.cold and not caches.drops_all():
            raise RejectedError(
                "--cold: only root can empty the page cache, so it could not be proved to be "
                "cold; run it with sudo, or measure with --warm"
            )
        if self.stdin is not None and not Path(self.stdin).is_file():
            raise RejectedError(f"--stdin {self.stdin}: no such file")


@dataclass(frozen=True)
class Executions:
    """How a run executes its command: `count` times, with a flush after each of several if it
    writes. `share_process`: runs that follow each other share the process that starts the command,
    as no meter has to be read between them."""

    count: int = 1
    writes: bool = False
    share_process: bool = False


def make(
    options: Options,
    commands: Sequence[Command],
    how_often: Sequence[Executions],
    how: How,
    directory: str,
) -> Plan:
    """The plan of a campaign in which a run executes `commands[k]` as `how_often[k]` says. Raises
    RejectedError."""
    how.check()
    rule = None
    if how.precision is not None:
        rule = AdaptiveProtocol(
            precision=how.precision,
            most_repetitions=max(30, how.repetitions, how.least or 0),
            most_whole=max(30, how.least or 0),
            settle_least_s=0.0,
            settle_most_s=how.settle_s,
            lengths_s=(),
            pilot="none",
        )
        if (reason := rule.impossible()) is not None:
            raise RejectedError(reason)
    experiments = [
        _planned(command, executions, how, directory)
        for command, executions in zip(commands, how_often, strict=True)
    ]
    repetitions = how.repetitions
    if rule is not None:
        repetitions = max(3, min(how.repetitions, 4))
    repetitions = max(repetitions, how.least or 0)
    plan = Plan(
        name="",
        created_utc="",
        suite=SUITE,
        suite_title="commands (eeio bench)",
        options=options,
        protocol=Protocol(repetitions, how.settle_s, how.idle_s, True, adaptive=rule),
        profiles={PROFILE: profiles.find(PROFILE)},
        experiments=tuple(experiments),
        not_measured=(),
        runs=(),
    )
    if rule is not None:
        return replace(plan, runs=in_rounds(experiments, repetitions, plan))
    sizes = [_runs_in_block(executions, repetitions, len(commands)) for executions in how_often]
    return replace(plan, runs=in_blocks(experiments, repetitions, sizes, options.seed))


def _runs_in_block(executions: Executions, repetitions: int, commands: int) -> int:
    if not executions.share_process:
        return 1
    blocks = _BLOCKS
    if commands == 1:
        blocks = 1
    return min(_MOST_IN_BLOCK, math.ceil(repetitions / blocks))


def _planned(
    command: Command, executions: Executions, how: How, directory: str
) -> PlannedExperiment:
    factors = {
        "command": command.as_factor,
        "count": str(executions.count),
        "cache": "cold" if how.cold else "warm",
        "directory": directory,
        "timeout_s": f"{how.timeout_s:g}",
    }
    if how.prepare:
        factors["prepare"] = how.prepare
    if how.conclude:
        factors["conclude"] = how.conclude
    if how.stdin:
        factors["stdin"] = how.stdin
    if how.ignore_failure:
        factors["ignore_failure"] = "on"
    if executions.writes and executions.count > 1:
        factors["flush"] = "each"
    if executions.share_process:
        factors[shared_process.FACTOR] = shared_process.SHARED
    # Where it ran, how often in a run, and when it is given up, is not what was asked. A named
    # command is the same one, however its text changes.
    how_often = {"directory", "count", "flush", "timeout_s", shared_process.FACTOR}
    left_out = how_often
    if command.name:
        left_out = factors.keys() - {"cache"}
    described = {k: v for k, v in factors.items() if k not in left_out}
    described |= {"words": command.name or command.text, **command.parameters}
    experiment = Experiment(
        level="application",
        tool="command",
        operation="mixed",
        spatiality="mixed",
        request_size_bytes=None,
        cache=CacheLayers("on"),
        target="file",
        arguments=tuple(sorted(described.items())),
        flush="none",
    )
    return PlannedExperiment(experiment, PROFILE, factors, command.name or command.text)
