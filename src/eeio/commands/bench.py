"""`eeio bench`: time, joules and bytes of any command."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from eeio import __version__, paths
from eeio.commands import campaign_options
from eeio.commands.arguments import AnyOrder, OptionGroup, add_help_all
from eeio.commands.campaign_folders import analysis
from eeio.commands.output_file import add_formats, write_document, write_file
from eeio.commands.restore import restore_orphans
from eeio.commands.waiting import add_wait
from eeio.comparison.commands import Comparison, benches, comparisons
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, EeioError, LimitError, RejectedError
from eeio.measure.bench import plan as plans
from eeio.measure.bench import request, trial
from eeio.measure.bench.plan import How
from eeio.measure.bench.trial import Trial
from eeio.measure.campaign import safety
from eeio.measure.campaign.plan import Plan
from eeio.measure.campaign.progress import duration_text
from eeio.measure.campaign.runner import campaign_locks, execute, store_lock
from eeio.measure.power import check_meters
from eeio.record.design import Options
from eeio.record.store import Store, load
from eeio.report.document import render_markdown
from eeio.report.documents import bench as report
from eeio.units.names import campaign_name
from eeio.units.number_text import number
from eeio.units.sizes import prefixed
from eeio_power.meters import close_meters
from eeio_power.monitor import COUNTER_RATE_HZ, SAMPLE_RATE_HZ, open_source, reading_period_s

_IDLE_S = 5.0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "bench",
        help="benchmark commands: time, energy, bytes",
        description="Runs commands repeatedly in one random order and stores a campaign. Shows "
        "time, W, J, bytes at the drive, MB/J, processor time and memory with quartiles, and "
        "the ratio of energies. A run repeats commands shorter than 0.2 s.",
        epilog="exit codes: those of eeio; 1 if a command fails (see --ignore-failure)",
    )
    parser.__class__ = AnyOrder
    parser.add_argument(
        "commands", metavar="COMMAND", nargs="*",
        help="shell command in quotes, or a program with arguments after --",
    )  # fmt: skip
    runs = OptionGroup(parser, "runs")
    runs.add(
        "--repetitions", "--runs", "-r", metavar="N", type=campaign_options.repetitions,
        default=10, help="runs of each command (default: %(default)s)",
    )  # fmt: skip
    runs.rare("--min-runs", "-m", metavar="N", type=campaign_options.repetitions,
                        help="minimum runs of each command, also with --precision")  # fmt: skip
    runs.add(
        "--precision", metavar="SHARE", type=campaign_options.share,
        help="repeat, up to 30 times, until time, W and MB/J reach this, e.g. 3%%",
    )  # fmt: skip
    runs.add("--warmup", "-w", metavar="N", type=int, default=0,
                        help="executions before measurement (default: 0)")  # fmt: skip
    caches = OptionGroup(parser)
    caches.container = runs.container.add_mutually_exclusive_group()
    caches.add("--cold", action="store_true", help="empty the page cache before each run (as root)")
    caches.rare("--warm", action="store_true", help="keep the page cache (default)")
    runs.rare("--settle", metavar="S", type=campaign_options.seconds, default=0.0,
                        help="pause before each run (default: 0)")  # fmt: skip
    runs.rare("--seed", metavar="N", type=campaign_options.seed,
                        help="repeat the random order of a campaign")  # fmt: skip
    runs.add("--timeout", metavar="S", type=campaign_options.seconds, default=3600.0,
                        help="time limit of a run (default: %(default)g)")  # fmt: skip
    campaign_options.add_share_machine(runs)
    add_wait(runs)
    commands = OptionGroup(parser, "commands")
    commands.add(
        "--command-name", "-n", metavar="NAME", action="append", default=[],
        help="command names in order, repeatable; compare matches them",
    )  # fmt: skip
    commands.add("--prepare", "-p", metavar="COMMAND", help="command before each run, not measured")
    commands.rare("--conclude", metavar="COMMAND",
                        help="command after each run, not measured")  # fmt: skip
    commands.add(
        "--parameter-list", "-L", metavar=("NAME", "A,B,C"), nargs=2, action="append", default=[],
        help="replace {NAME} in the command by each value",
    )  # fmt: skip
    commands.rare(
        "--parameter-scan", "-P", metavar=("NAME", "LEAST", "MOST"), nargs=3, action="append",
        default=[], help="replace {NAME} in the command by each number",
    )  # fmt: skip
    commands.rare("--parameter-step-size", "-D", metavar="STEP", help="step of --parameter-scan")
    commands.rare("--shell", "-S", metavar="SHELL",
                        help="shell for the commands, or none (default: /bin/sh)")  # fmt: skip
    commands.rare("--stdin", metavar="FILE", help="standard input (default: empty)")
    commands.add("--ignore-failure", "-i", action="store_true",
                        help="ignore non-zero exit codes")  # fmt: skip
    commands.add(
        "--directory", metavar="DIR", default=".",
        help="working directory and drive to observe (default: current)",
    )  # fmt: skip
    commands.rare("--device", metavar="DEV", help="drive to observe instead")
    power = OptionGroup(parser, "power")
    power.add("--meter", metavar="SPEC", action="append", default=[],
                        help="power meter, repeatable (default: auto)")  # fmt: skip
    output = OptionGroup(parser, "output")
    output.add("--name", metavar="NAME", help="campaign name")
    add_formats(output)
    output.add("--export-json", metavar="FILE", help="write results in hyperfine's format")
    output.rare("--export-markdown", metavar="FILE", help="write the tables as Markdown")
    add_help_all(parser)
    parser.set_defaults(action=bench, program=())


def bench(arguments: argparse.Namespace) -> int:
    for output in (arguments.output, arguments.export_json, arguments.export_markdown):
        if output is not None:
            paths.check_output_folder(Path(output).parent)
    how = How(
        arguments.repetitions, arguments.prepare, arguments.conclude, arguments.cold,
        None if arguments.stdin is None else str(Path(arguments.stdin).absolute()),
        arguments.ignore_failure, arguments.timeout, arguments.settle, _IDLE_S,
        arguments.precision, least=arguments.min_runs,
    )  # fmt: skip
    how.check()
    wanted = _requested(arguments)
    directory = str(Path(arguments.directory).absolute())
    if not Path(directory).is_dir():
        raise RejectedError(f"{directory}: no such directory")
    directory = str(safety.checked_folder(Path(directory)))
    named = Options(
        preset=plans.PRESET, device=arguments.device, seed=campaign_options.drawn(arguments.seed),
        suite=plans.SUITE, directory=directory, meters=tuple(arguments.meter),
        repetitions=arguments.repetitions, settle_s=arguments.settle,
        rate_hz=SAMPLE_RATE_HZ, counter_rate_hz=COUNTER_RATE_HZ,
        share_machine=arguments.share_machine,
        # A command may use no drive: its row then has missing values.
        allow_memory_filesystem=True,
    )  # fmt: skip
    options = safety.with_nodes(named)
    store = _store(arguments.name)
    restore_orphans()
    period_s = _period_s(options)
    # The trials, too, would disturb a campaign on this machine.
    with campaign_locks(plans.make(options, wanted, [1] * len(wanted), how, directory)):
        trials = [trial.run(command, how, directory, arguments.warmup) for command in wanted]
        # The file system of the directory can be flushed after each execution, a drive cannot.
        is_single = arguments.device is not None
        counts = [1 if is_single else one.executions(how, period_s) for one in trials]
        plan = replace(
            plans.make(options, wanted, counts, how, directory, [one.writes for one in trials]),
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
            outcome = execute(plan, store, _announce(plan, trials, counts))
    show(store, arguments)
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
    for one, count in zip(trials, counts, strict=True):
        executions = protocol.repetitions * count
        least_s += executions * one.durable_s + protocol.repetitions * protocol.settle_s
        read = _sum(read, one.bytes_read, executions)
        written = _sum(written, one.bytes_written, executions)
    more = "" if protocol.adaptive is None else "at least "
    print(
        f"{more}{len(plan.runs)} runs of {_range(counts)}, {more}about {duration_text(least_s)}, "
        f"{'' if more else 'up to '}{_gb(written)} written and {_gb(read)} read",
        file=sys.stderr,
    )
    return least_s


def _sum(total: int | None, each: int | None, count: int) -> int | None:
    return None if total is None or each is None else total + each * count


def _gb(size: int | None) -> str:
    if size is None:
        return "unknown bytes"
    factor, unit = prefixed(size, "B")
    return f"{number(size / factor)} {unit}"


def _range(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least if least == most else f'{least} to {most}'} execution{'s' * (most > 1)}"


def show(store: Store, arguments: argparse.Namespace) -> None:
    """Prints the campaign's results."""
    campaign = load(store.folder)
    found = benches(campaign)
    compared: Sequence[Comparison] = ()
    if len(found) > 1:
        try:
            with analysis():
                compared = comparisons(found)
        except EeioError as error:
            print(f"no comparison: {error}", file=sys.stderr)
    document = report.document(campaign, found, compared)
    write_document(arguments, document)
    if arguments.export_json is not None:
        write_file(Path(arguments.export_json), report.hyperfine_json(found))
    if arguments.export_markdown is not None:
        write_file(Path(arguments.export_markdown), render_markdown(document))
    print(f"campaign {campaign.name}: `eeio report {campaign.name}`", file=sys.stderr)


def _requested(arguments: argparse.Namespace) -> list[request.Command]:
    parameters: dict[str, Sequence[str]] = {}
    for name, least, most in arguments.parameter_scan:
        name, values = request.scanned(name, least, most, arguments.parameter_step_size)
        parameters[name] = values
    for name, text in arguments.parameter_list:
        name, values = request.listed(name, text)
        parameters[name] = values
    return request.commands(
        arguments.commands, arguments.program, parameters, arguments.command_name, arguments.shell
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


def _period_s(options: Options) -> float:
    """How far apart the readings of the slowest meter are, s; 0 without one."""
    check_meters(options.meters)
    source = open_source(options.meters, False)
    try:
        rates = options.rate_hz, options.counter_rate_hz
        return max((reading_period_s(meter, *rates) for meter in source.meters), default=0.0)
    finally:
        close_meters(source.meters)
