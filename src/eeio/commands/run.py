"""`eeio run`: a campaign, and its result."""

import os
import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from eeio import __version__, paths
from eeio.commands import report
from eeio.commands.campaign_options import CampaignRequest
from eeio.commands.restore import restore_orphans
from eeio.commands.waiting import wait_option
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, LimitError, RejectedError
from eeio.measure.campaign import plan as plans
from eeio.measure.campaign import safety
from eeio.measure.campaign.forecast import forecast, most_text
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.progress import duration_text
from eeio.measure.campaign.runner import Outcome, campaign_locks, execute, store_lock
from eeio.measure.power import check_meters
from eeio.measure.profiles import suite as suites
from eeio.options import Command, option, switch
from eeio.record.design import Design, Options
from eeio.record.store import Store, read_design
from eeio.units.names import campaign_name, similar

# Limits above which `run` requires confirmation on a terminal.
_LONG_S = 1800.0
_MUCH_BYTES = 50e9


@dataclass(frozen=True, kw_only=True)
class RunRequest(CampaignRequest):
    """`eeio run`."""

    name: str | None = option(
        "--name",
        value="NAME",
        help="campaign name (default: suite and time)",
    )
    yes: bool = switch(
        "--yes",
        help="skip the confirmation of long campaigns or many writes",
    )
    wait: float | None = wait_option()


def run_suite(request: RunRequest) -> int:
    named = _absolute(request.options())
    suite = suites.find(named.suite)
    # A suite given as a folder must be found again by `resume`, from anywhere.
    if "/" in named.suite:
        named = replace(named, suite=str(suite.folder))
    options = safety.with_nodes(named)
    now = datetime.now(UTC)
    name = request.name or f"{suite.name}-{options.preset}-{now:%Y%m%d-%H%M%S}"
    _check_name(name)
    restore_orphans()
    plan = plans.make(options, suite)
    if plan.why_nothing is not None:
        raise RejectedError(plan.why_nothing)
    plan.check_room()
    if plan.made_volumes and os.geteuid() != 0:
        raise RejectedError(
            f"making file systems ({', '.join(plan.made_volumes)}) needs root: run it with sudo"
        )
    check_meters(options.meters)
    store = Store(paths.new_campaign_folder(name))
    if store.folder.exists():
        raise RejectedError(
            f"{store.folder} exists: continue it with `eeio resume {name}`, or choose another "
            "--name"
        )
    plan = replace(
        plan,
        name=name,
        created_utc=now.isoformat(timespec="seconds"),
        disks=safety.disks(options),
        eeio_version=__version__,
        as_named=named,
    )
    with campaign_locks(plan), ExitStack() as stack:
        with store.made_complete() as new:
            _announce(plan, suite, request.yes)
            new.create(plan)
            safety.note_targets(options, new.folder)
            stack.enter_context(store_lock(new.folder))
        print(f"campaign {name}: {len(plan.runs)} runs, results in {store.folder}", file=sys.stderr)
        try:
            outcome = execute(plan, store)
        except RejectedError:
            if not store.done_indices():  # its name is free again
                shutil.rmtree(store.folder)
            raise
    return finish(store, outcome)


def _announce(plan: Plan, suite: suites.Suite, agreed: bool) -> None:
    """Prints time and bytes; large ones require confirmation on a terminal, or RejectedError."""
    expected = forecast(plan, suite)
    print(
        f"{len(plan.runs)} runs, about {duration_text(expected.expected_s)}, "
        f"{most_text(plan, expected.bytes_written)}",
        file=sys.stderr,
    )
    is_large = expected.expected_s > _LONG_S or expected.bytes_written > _MUCH_BYTES
    if is_large and not agreed and sys.stdin.isatty() and sys.stderr.isatty():
        print("Start? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise RejectedError(
                "no experiment was run. --preset quick is shorter; --yes skips the question"
            )


def stored(name: str) -> Store:
    """The campaign of that name; RejectedError where there is none."""
    _check_name(name)
    store = Store(paths.results_root() / name)
    if not store.folder.is_dir():
        known = similar(name, paths.campaigns())
        raise RejectedError(
            f"no campaign {name!r} in {paths.results_root()}{known}; `eeio list` shows them"
        )
    paths.check_campaign_to_change(store.folder, "resumed")
    return store


def run_rest(store: Store, design: Design) -> int:
    """Runs what is left of a stored campaign by this design, which is stored when nothing stands
    against it; the caller holds `store_lock`."""
    options = safety.with_nodes(design.options)
    plan = replace(plans.of_design(replace(design, options=options)), as_named=design.options)
    restore_orphans()
    safety.check_targets(plan.options, bool(plan.made_volumes), store.folder)
    plan.check_room()
    safety.check_disks(plan.options, plan.disks, store.folder)
    with campaign_locks(plan):
        if read_design(store.folder) != design:
            store.write_design(design)
        outcome = execute(plan, store)
    return finish(store, outcome)


def _absolute(options: Options) -> Options:
    """Paths that mean the same when `resume` or `restore` is typed somewhere else."""

    def absolute(text: str | None) -> str | None:
        if text is None:
            return None
        return str(Path(text).absolute())

    return replace(
        options,
        directory=(
            str(safety.checked_folder(Path(options.directory))) if options.directory else None
        ),
        device=absolute(options.device),
        erase=absolute(options.erase),
        sysfs_root=str(Path(options.sysfs_root).absolute()),
    )


def _check_name(name: str) -> None:
    try:
        campaign_name(name)
    except LimitError as error:
        raise RejectedError(str(error)) from error


def finish(store: Store, outcome: Outcome) -> int:
    """The summary on stdout, the page in the campaign's folder."""
    report.print_summary(store.folder)
    if outcome.invalid == 0:
        return EXIT_DONE
    print(
        f"eeio: {outcome.invalid} of {outcome.runs} runs failed or are invalid; "
        f"`eeio report {store.folder.name}` lists why",
        file=sys.stderr,
    )
    return EXIT_DONE_WITH_INVALID_RUNS


COMMAND = Command(
    "run",
    RunRequest,
    run_suite,
    help="run a suite and store every run",
    description="Runs a suite: all repetitions of all experiments in one random order. "
    "`eeio plan` with the same options shows the experiments without running them.",
)
