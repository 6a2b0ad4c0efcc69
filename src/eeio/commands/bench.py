"""`eeio bench`: time, joules and bytes of any command."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from eeio import __version__, paths
from eeio.commands.campaign_folders import analysis
from eeio.commands.output_file import (
    document_format,
    output_file,
    pager_switch,
    sort_option,
    write_document,
    write_file,
)
from eeio.commands.restore import restore_orphans
from eeio.commands.waiting import wait_option
from eeio.comparison.commands import SORTS, Comparison, benches, comparisons, sorted_by
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, EeioError, LimitError, RejectedError
from eeio.measure.bench import plan as plans
from eeio.measure.bench import request as requests
from eeio.measure.bench import trial
from eeio.measure.bench.plan import Executions, How
from eeio.measure.bench.trial import Trial
from eeio.measure.campaign import safety
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.progress import duration_text
from eeio.measure.campaign.runner import campaign_locks, execute, store_lock
from eeio.measure.power import check_meters
from eeio.options import Command, argument, changed, option, switch
from eeio.record.design import Options
from eeio.record.store import Campaign, Store
from eeio.report.document import render_markdown
from eeio.report.documents import bench as report
from eeio.units import amounts
from eeio.units.names import campaign_name
from eeio.units.number_text import number
from eeio.units.sizes import prefixed
from eeio_power.meters import close_meters
from eeio_power.monitor import COUNTER_RATE_HZ, SAMPLE_RATE_HZ, open_source, reading_period_s

_IDLE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class BenchRequest:
    """`eeio bench`."""

    commands: tuple[str, ...] = argument(
        "COMMAND",
        help="shell command in quotes, or a program with arguments after --",
        count="*",
    )
    repetitions: int = option(
        "--repetitions",
        "--runs",
        "-r",
        value="N",
        help="runs of each command (default: %(default)s)",
        parse=amounts.repetitions,
        default=10,
        group="runs",
    )
    min_runs: int | None = option(
        "--min-runs",
        "-m",
        value="N",
        help="minimum runs of each command, also with --precision",
        parse=amounts.repetitions,
        group="runs",
        rare=True,
    )
    precision: float | None = option(
        "--precision",
        value="SHARE",
        help="repeat, up to 30 times, until time, W and MB/J reach this, e.g. 3%%",
        parse=amounts.share_below_one,
        group="runs",
    )
    warmup: int = option(
        "--warmup",
        "-w",
        value="N",
        help="executions before measurement (default: 0)",
        parse=int,
        default=0,
        group="runs",
    )
    cold: bool = switch(
        "--cold",
        help="empty the page cache before each run (as root)",
        group="runs",
        alternative="caches",
    )
    warm: bool = switch(
        "--warm",
        help="keep the page cache (default)",
        group="runs",
        alternative="caches",
        rare=True,
    )
    settle: float = option(
        "--settle",
        value="S",
        help="pause before each run (default: 0)",
        parse=amounts.pause,
        default=0.0,
        group="runs",
        rare=True,
    )
    seed: int = changed(Options, "seed", group="runs")
    timeout: float = option(
        "--timeout",
        value="S",
        help="time limit of a run (default: %(default)g)",
        parse=amounts.pause,
        default=3600.0,
        group="runs",
    )
    share_machine: bool = changed(Options, "share_machine", group="runs")
    wait: float | None = wait_option("runs")
    command_name: tuple[str, ...] = option(
        "--command-name",
        "-n",
        value="NAME",
        help="command names in order, repeatable; compare matches them",
        repeat=True,
        group="commands",
    )
    prepare: str | None = option(
        "--prepare",
        "-p",
        value="COMMAND",
        help="command before each run, not measured",
        group="commands",
    )
    conclude: str | None = option(
        "--conclude",
        value="COMMAND",
        help="command after each run, not measured",
        group="commands",
        rare=True,
    )
    parameter_list: tuple[tuple[str, str], ...] = option(
        "--parameter-list",
        "-L",
        value=("NAME", "A,B,C"),
        help="replace {NAME} in the command by each value",
        repeat=True,
        count=2,
        group="commands",
    )
    parameter_scan: tuple[tuple[str, str, str], ...] = option(
        "--parameter-scan",
        "-P",
        value=("NAME", "LEAST", "MOST"),
        help="replace {NAME} in the command by each number",
        repeat=True,
        count=3,
        group="commands",
        rare=True,
    )
    parameter_step_size: str | None = option(
        "--parameter-step-size",
        "-D",
        value="STEP",
        help="step of --parameter-scan",
        group="commands",
        rare=True,
    )
    shell: str | None = option(
        "--shell",
        "-S",
        value="SHELL",
        help="shell for the commands, or none (default: /bin/sh)",
        group="commands",
        rare=True,
    )
    stdin: str | None = option(
        "--stdin",
        value="FILE",
        help="standard input (default: empty)",
        group="commands",
        rare=True,
    )
    ignore_failure: bool = switch(
        "--ignore-failure",
        "-i",
        help="ignore non-zero exit codes",
        group="commands",
    )
    directory: str = option(
        "--directory",
        value="DIR",
        help="working directory and drive to observe (default: current)",
        default=".",
        group="commands",
    )
    device: str | None = option(
        "--device",
        value="DEV",
        help="drive to observe instead",
        group="commands",
        rare=True,
    )
    meter: tuple[str, ...] = option(
        "--meter",
        value="SPEC",
        help="power meter, repeatable (default: auto)",
        repeat=True,
        group="power",
    )
    name: str | None = option(
        "--name",
        value="NAME",
        help="campaign name",
        group="output",
    )
    sort: str | None = sort_option(SORTS, "output")
    format: str = document_format(group="output")
    output: Path | None = output_file(group="output")
    no_pager: bool = pager_switch(group="output")
    export_json: str | None = option(
        "--export-json",
        value="FILE",
        help="write results in hyperfine's format",
        group="output",
    )
    export_markdown: str | None = option(
        "--export-markdown",
        value="FILE",
        help="write the tables as Markdown",
        group="output",
        rare=True,
    )
    program: tuple[str, ...] = ()


def bench(request: BenchRequest) -> int:
    for output in (request.output, request.export_json, request.export_markdown):
        if output is not None:
            paths.check_output_folder(Path(output).parent)
    how = How(
        request.repetitions,
        request.prepare,
        request.conclude,
        request.cold,
        None if request.stdin is None else str(Path(request.stdin).absolute()),
        request.ignore_failure,
        request.timeout,
        request.settle,
        _IDLE_S,
        request.precision,
        least=request.min_runs,
    )
    how.check()
    wanted = _requested(request)
    directory = str(Path(request.directory).absolute())
    if not Path(directory).is_dir():
        raise RejectedError(f"{directory}: no such directory")
    directory = str(safety.checked_folder(Path(directory)))
    named = Options(
        preset=plans.PRESET,
        device=request.device,
        seed=request.seed,
        suite=plans.SUITE,
        directory=directory,
        meters=request.meter,
        repetitions=request.repetitions,
        settle_s=request.settle,
        rate_hz=SAMPLE_RATE_HZ,
        counter_rate_hz=COUNTER_RATE_HZ,
        share_machine=request.share_machine,
        # A command may use no drive: its row then has missing values.
        allow_memory_filesystem=True,
    )
    options = safety.with_nodes(named)
    store = _store(request.name)
    restore_orphans()
    period_s = _period_s(options)
    # The trials, too, would disturb a campaign on this machine.
    once = [Executions()] * len(wanted)
    with campaign_locks(plans.make(options, wanted, once, how, directory)):
        trials = [trial.run(command, how, directory, request.warmup) for command in wanted]
        # The file system of the directory can be flushed after each execution, a drive cannot.
        how_often = once
        if request.device is None:
            how_often = [of_command.executions(how, period_s) for of_command in trials]
        plan = replace(
            plans.make(options, wanted, how_often, how, directory),
            name=store.folder.name,
            created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            disks=safety.disks(options),
            eeio_version=__version__,
            as_named=named,
        )
        with ExitStack() as stack:
            with store.made_complete() as new:
                new.create(plan)
                safety.note_targets(options, new.folder)
                stack.enter_context(store_lock(new.folder))
            counts = [executions.count for executions in how_often]
            outcome = execute(plan, store, _announce(plan, trials, counts))
    show(outcome.campaign, request)
    if outcome.invalid:
        print(
            f"eeio: {outcome.invalid} of {outcome.runs} runs failed or are invalid; `eeio "
            f"report {store.folder.name}` shows why",
            file=sys.stderr,
        )
        return EXIT_DONE_WITH_INVALID_RUNS
    return EXIT_DONE


def _announce(plan: Plan, trials: Sequence[Trial], counts: Sequence[int]) -> float:
    """Prints the forecast of time and bytes, from one execution of each command; returns the time,
    s."""
    protocol = plan.protocol
    least_s = protocol.idle_s
    read: int | None = 0
    written: int | None = 0
    for tried, count in zip(trials, counts, strict=True):
        executions = protocol.repetitions * count
        least_s += executions * tried.durable_s + protocol.repetitions * protocol.settle_s
        read = _sum(read, tried.bytes_read, executions)
        written = _sum(written, tried.bytes_written, executions)
    more, up_to = "at least ", ""
    if protocol.adaptive is None:
        more, up_to = "", "up to "
    print(
        f"{more}{len(plan.runs)} runs of {_range(counts)}, {more}about {duration_text(least_s)}, "
        f"{up_to}{_gb(written)} written and {_gb(read)} read",
        file=sys.stderr,
    )
    return least_s


def _sum(total: int | None, each: int | None, count: int) -> int | None:
    if total is None or each is None:
        return None
    return total + each * count


def _gb(size: int | None) -> str:
    if size is None:
        return "unknown bytes"
    factor, unit = prefixed(size, "B")
    return f"{number(size / factor)} {unit}"


def _range(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least if least == most else f'{least} to {most}'} execution{'s' * (most > 1)}"


def show(campaign: Campaign, request: BenchRequest) -> None:
    """Prints the campaign's results."""
    found = benches(campaign)
    compared: Sequence[Comparison] = ()
    if len(found) > 1:
        try:
            with analysis():
                compared = comparisons(found)
        except EeioError as error:
            print(f"no comparison: {error}", file=sys.stderr)
    if request.sort is not None:
        found = sorted_by(found, request.sort)
    document = report.document(campaign, found, compared)
    write_document(request, document)
    if request.export_json is not None:
        write_file(Path(request.export_json), report.hyperfine_json(found))
    if request.export_markdown is not None:
        write_file(Path(request.export_markdown), render_markdown(document))
    print(f"campaign {campaign.name}: `eeio report {campaign.name}`", file=sys.stderr)


def _requested(request: BenchRequest) -> list[requests.Command]:
    parameters: dict[str, Sequence[str]] = {}
    for name, least, most in request.parameter_scan:
        name, values = requests.scanned(name, least, most, request.parameter_step_size)
        parameters[name] = values
    for name, text in request.parameter_list:
        name, values = requests.listed(name, text)
        parameters[name] = values
    return requests.commands(
        request.commands, request.program, parameters, request.command_name, request.shell
    )


def _store(name: str | None) -> Store:
    name = name or f"bench-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        campaign_name(name)
    except LimitError as error:
        raise RejectedError(str(error)) from error
    store = Store(paths.new_campaign_folder(name))
    if store.folder.exists():
        raise RejectedError(f"{store.folder} exists; choose another --name")
    return store


def _period_s(options: Options) -> float | None:
    """How far apart the readings of the slowest meter are, s; None without one."""
    check_meters(options.meters)
    source = open_source(options.meters, False)
    try:
        rates = options.rate_hz, options.counter_rate_hz
        return max((reading_period_s(meter, *rates) for meter in source.meters), default=None)
    finally:
        close_meters(source.meters)


COMMAND = Command(
    "bench",
    BenchRequest,
    bench,
    help="benchmark commands: time, energy, bytes",
    description="Runs commands repeatedly in one random order and stores a campaign. Shows "
    "time, W, J, bytes at the drive, MB/J, processor time and memory with quartiles, and "
    "the ratio of energies. A run repeats commands shorter than 0.2 s.",
    epilog="exit codes: those of eeio; 1 if a command fails (see --ignore-failure)",
    any_order=True,
)
