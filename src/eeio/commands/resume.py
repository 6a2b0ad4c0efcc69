"""`eeio resume`: the rest of a campaign; with --extend, further repetitions of an adaptive one."""

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eeio.commands.campaign_folders import analysis
from eeio.commands.restore import restore_orphans
from eeio.commands.run import finish, run_rest, stored
from eeio.commands.waiting import wait_option
from eeio.errors import EXIT_DONE, RejectedError
from eeio.measure.campaign.progress import duration_text
from eeio.measure.campaign.runner import Outcome, store_lock
from eeio.options import Command, argument, option, switch
from eeio.record.design import Design
from eeio.record.store import Campaign, Store, load, progress, read_design

if TYPE_CHECKING:
    from eeio.report.campaign.answers import Answers

MOST = 30
"""Default repetitions of an experiment that an extension requests."""


@dataclass(frozen=True, kw_only=True)
class ResumeRequest:
    """`eeio resume`."""

    name: str = argument(
        "NAME",
        help="campaign name",
    )
    extend: bool = switch(
        "--extend",
        help="add repetitions where results are inconclusive",
    )
    most: int | None = option(
        "--most",
        value="N",
        help=f"maximum repetitions of an experiment (default: {MOST})",
        parse=int,
        group="with --extend",
    )
    dry_run: bool = switch(
        "--dry-run",
        help="show the added repetitions without running them",
        group="with --extend",
    )
    wait: float | None = wait_option()


def resume(request: ResumeRequest) -> int:
    if request.extend:
        return extend(request)
    if request.dry_run or request.most is not None:
        raise RejectedError("--most and --dry-run: only with --extend")
    store = stored(request.name)
    with store_lock(store.folder):
        design, extent = read_design(store.folder), progress(store.folder)
        # The other two protocols decide after each round whether there is another one.
        fixed = design.protocol.adaptive is None and design.protocol.steady is None
        if fixed and extent.stored_runs >= extent.planned_runs:
            print(f"eeio: {request.name} is complete; there is nothing to do", file=sys.stderr)
            restore_orphans()
            return finish(store, Outcome(load(store.folder)))
        return run_rest(store, design)


def extend(request: ResumeRequest) -> int:
    store = stored(request.name)
    # No other process may write the campaign meanwhile.
    with nullcontext() if request.dry_run else store_lock(store.folder):
        most = MOST
        if request.most is not None:
            most = request.most
        return _extend(store, most, request.dry_run)


def _extend(store: Store, most: int, dry_run: bool) -> int:
    campaign = load(store.folder)
    _check(campaign, most)
    with analysis():
        from eeio.comparison.questions import repetitions_requested
        from eeio.report.campaign.answers import answers, rule_of
    now = answers(campaign)
    adaptive = campaign.design.protocol.adaptive
    assert now is not None and adaptive is not None  # _check has seen to it
    # Judged by the level that its answers will have.
    design = replace(campaign.design, extensions=campaign.design.extensions + 1)
    then = answers(replace(campaign, design=design))
    assert then is not None and then.rule == rule_of(adaptive, design.extensions)
    targets = repetitions_requested(then.questions, most)
    _say(campaign, now, targets, most)
    if not targets or dry_run:
        return EXIT_DONE
    return run_rest(store, replace(design, targets=targets))


def _check(campaign: Campaign, most: int) -> None:
    design: Design = campaign.design
    if design.protocol.adaptive is None:
        raise RejectedError(
            f"{campaign.name}: its repetitions have a fixed number and one random order, so "
            "adding some would bias it. Start a campaign with --adaptive, or with the "
            f"repetitions from `eeio plan --detect 5% --from {campaign.name}`"
        )
    left = {p.experiment.id for p in design.experiments} - set(design.stopped)
    if left or not campaign.is_complete:
        raise RejectedError(f"{campaign.name} has not ended: `eeio resume {campaign.name}` first")
    if most < 2:
        raise RejectedError(f"--most {most}: 2 repetitions or more")


def _say(campaign: Campaign, now: "Answers", targets: Mapping[str, int], most: int) -> None:
    still_open = [question for question in now.questions if question.is_open]
    print(
        f"{campaign.name}: {len(still_open)} of {len(now.questions)} questions are open",
        file=sys.stderr,
    )
    hopeless = sum((q.change.needed or most + 1) > most for q in still_open)
    if hopeless:
        print(f"{hopeless} would take more than {most} repetitions of each", file=sys.stderr)
    done = dict.fromkeys(targets, 0)
    run_s: dict[str, float] = {}
    for run in campaign.runs:
        id = run.experiment.id
        if id in done:
            done[id] += 1
            run_s[id] = (
                (run.prepare_s or 0.0)
                + (run.settled_after_s or 0.0)
                + run.duration_s
                + (run.sync_s or 0.0)
            )
    for planned in campaign.design.experiments:
        id = planned.experiment.id
        if id in targets:
            print(f"{planned.description}: {done[id]} -> {targets[id]}", file=sys.stderr)
    if targets:
        more_s = sum(run_s[id] * (many - done[id]) for id, many in targets.items())
        print(
            f"about {duration_text(more_s)}, and the anchors in each round",
            file=sys.stderr,
        )


COMMAND = Command(
    "resume",
    ResumeRequest,
    resume,
    help="resume an interrupted campaign, or add repetitions",
    description="Runs the missing runs of a campaign in their original order. --extend adds "
    "repetitions to a complete adaptive campaign where its results are inconclusive. Each "
    "extension lowers the significance level, because it depends on the results so far.",
)
