"""`eeio power`: meters and the energy of any command, without a campaign."""

import argparse
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

from eeio import cluster
from eeio.commands.doctor import add_replay
from eeio.errors import (
    EXIT_DONE,
    EXIT_DONE_WITH_INVALID_RUNS,
    EXIT_FAILED,
    EXIT_SIGNAL_BASE,
    RefusedError,
)
from eeio.machine.replay import replayed
from eeio.power import SAMPLE_RATE_HZ, open_source
from eeio.signals import signals_raise
from eeio.terminal import raw
from eeio_limits import LimitError, inputs
from eeio_limits.quantities import DURATION, TIMESTAMP
from eeio_power import alignment, prometheus
from eeio_power.breakdown import Share, above_idle, breakdown
from eeio_power.errors import PowerError
from eeio_power.grades import PROFILES, Grade, Profile, grade
from eeio_power.meters import Finding, LoggedMeter, Meter, close_meters, discover, open_meters
from eeio_power.reading import EnergyReading
from eeio_power.recording import Recording, reading_json, record, to_json
from eeio_power.sampler import Sampler

_LIST_SCHEMA = 1
_SUM_SCHEMA = 1
_NOWHERE = Path(os.devnull)

_RECORD_EXITS = """\
exit codes: 0 the command ended with 0; 1 it did not (its own exit code is shown, and is in the
JSON), or ran out of time; 2 wrong usage, nothing ran; 3 it ended with 0, but a reading is invalid;
130 interrupted; 143 stopped by SIGTERM, and the command with it"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    power = subparsers.add_parser(
        "power",
        help="list and watch meters, record the energy of a command",
        description="Meters and the energy of any command, without a campaign.",
    )
    actions = power.add_subparsers(dest="power_command", metavar="COMMAND", required=True)
    _add_list(actions)
    _add_watch(actions)
    _add_record(actions)
    _add_calibrate(actions)
    _add_serve(actions)
    _add_node(actions)
    _add_sum(actions)


# --- list --------------------------------------------------------------------------------------


def _add_list(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "list", help="which meters are here, and what the others need",
        description="Looks for meters. Nothing is written to a serial line or the network.",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="for programs")
    add_replay(parser)
    parser.set_defaults(action=show_list)


def show_list(arguments: argparse.Namespace) -> int:
    if arguments.replay is None:
        return _show_list(discover(), arguments.json)
    with replayed(arguments.replay) as replay:
        found = [
            replace(
                finding,
                reason=finding.reason and replay.named(finding.reason),
                remedy=finding.remedy and replay.named(finding.remedy),
            )
            for finding in discover(replay.root)
        ]
    return _show_list(found, arguments.json)


def _show_list(findings: Sequence[Finding], as_json: bool) -> int:
    if as_json:
        body = {"schema_version": _LIST_SCHEMA, "meters": [asdict(f) for f in findings]}
        print(json.dumps(body, indent=1))
        return EXIT_DONE
    for finding in sorted(findings, key=lambda f: not f.available):
        state = "ok     " if finding.available else "missing"
        where = f"{finding.kind}, {', '.join(finding.domains) or 'no domain'}"
        print(f"{state}  {finding.spec:14} {where}")
        for domain, contents in finding.contents.items():
            if words := contents.words():
                print(f"{'':9}{domain}: {words}")
        if finding.reason:
            print(f"{'':9}{finding.reason}")
        if finding.remedy and not finding.available:
            print(f"{'':9}-> {finding.remedy}")
    return EXIT_DONE


# --- record ------------------------------------------------------------------------------------


def _add_record(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "record", help="energy of a command",
        description="Runs a command and prints what it cost. With --json the command's output goes "
        "to stderr, so that stdout is JSON alone.",
        epilog=_RECORD_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    _add_meters(parser)
    parser.add_argument("--json", action="store_true", help="for programs (docs/meters.md)")
    parser.add_argument(
        "--profile", choices=tuple(PROFILES), help="judge the readings: PASS or WARN, with reasons"
    )
    parser.add_argument(
        "--idle", type=_seconds, default=0.0, metavar="S",
        help="measure S idle seconds first, and show idle against busy",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S",
        help="end the command (not what it started itself) after S",
    )  # fmt: skip
    parser.add_argument(
        "--samples", type=Path, metavar="FILE", help="keep the samples there (.csv.gz)"
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    parser.set_defaults(action=record_command)


def record_command(arguments: argparse.Namespace) -> int:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise RefusedError("which command? `eeio power record -- COMMAND [ARGUMENT]...`")
    with _opened(arguments.meter) as meters, tempfile.TemporaryDirectory(prefix="eeio-") as folder:
        try:
            with signals_raise("so is the command", (signal.SIGTERM,)):
                recording = record(
                    words,
                    meters,
                    arguments.samples or Path(folder) / "power.csv.gz",
                    rate_hz=arguments.rate,
                    idle_s=arguments.idle,
                    timeout_s=arguments.timeout,
                    stdout=sys.stderr if arguments.json else None,
                )
        except PowerError as error:
            raise RefusedError(str(error)) from error
    grades = _grades(recording, PROFILES.get(arguments.profile or ""), arguments.idle)
    if arguments.json:
        body = to_json(recording)
        if arguments.profile:
            body["grades"] = [asdict(found) for found in grades]
        print(json.dumps(body, indent=1))
        # What the JSON has no field for.
        if recording.timed_out:
            print(f"eeio: {words[0]} ran out of time and was ended", file=sys.stderr)
        if recording.write_error:
            print(f"eeio: {recording.write_error}", file=sys.stderr)
    else:
        _print_recording(recording, grades)
    if recording.interrupted:
        return EXIT_SIGNAL_BASE + 2
    if recording.exit_code != 0 or recording.timed_out:
        return EXIT_FAILED
    valid = all(reading.valid for reading in recording.readings)
    return EXIT_DONE if valid else EXIT_DONE_WITH_INVALID_RUNS


def _grades(recording: Recording, profile: Profile | None, settled_s: float) -> list[Grade]:
    if profile is None:
        return []
    infos = {info.name: info for info in recording.infos}
    return [
        grade(reading, infos[reading.meter], profile, recording.duration_s, settled_s or None)
        for reading in recording.readings
    ]


def _print_recording(recording: Recording, grades: Sequence[Grade]) -> None:
    ended = "ran out of time" if recording.timed_out else f"exit code {recording.exit_code}"
    print(f"\n{recording.duration_s:.3f} s, {ended}")
    for reading in recording.readings:
        print(_line(reading))
        for reason in reading.reasons:
            print(f"{'':12}{reason}")
    for rate in recording.rates:
        if rate.failed_reads:
            print(f"{rate.meter}: {rate.failed_reads} failed reads, the last: {rate.last_error}")
    if recording.write_error:
        print(recording.write_error)
    for found in grades:
        print(f"{found.verdict} {found.profile}: {found.meter} {found.domain}")
        for reason in found.reasons:
            print(f"{'':12}{reason}")
    _print_breakdown(recording)


def _print_breakdown(recording: Recording) -> None:
    busy = breakdown(recording.readings, recording.duration_s)
    if not recording.idle:
        return
    idle = breakdown(recording.idle, recording.idle_s)
    print(f"\n{'W':10}{'idle':>18}{'busy':>18}{'above idle':>18}")
    for low, high, more in zip(idle, busy, above_idle(busy, idle), strict=True):
        print(f"{high.part:10}{_watts(low):>18}{_watts(high):>18}{_watts(more):>18}")
        # What is above idle has the busy part's reason, or says why it is missing.
        reason = high.reason if high.power_w is None else more.reason
        if reason:
            print(f"{'':10}{reason}")


def _watts(share: Share) -> str:
    if share.power_w is None:
        return "-"
    return f"{share.power_w:.2f} ± {share.uncertainty_w or 0.0:.2f}"


def _line(reading: EnergyReading) -> str:
    head = f"{reading.meter:12}{reading.domain:8}"
    if reading.energy_j is None or reading.power_w is None:
        return f"{head}invalid"
    estimate = "" if reading.kind == "measured" else f"  {_kind_word(reading)}"
    return (
        f"{head}{reading.energy_j:12.2f} J ± {reading.uncertainty_j or 0.0:.2f}"
        f"  {reading.power_w:9.2f} W  coverage {reading.coverage:.1%}{estimate}"
        + ("  doubtful" if reading.doubtful else "")
    )


def _kind_word(reading: EnergyReading) -> str:
    return "ESTIMATE" if reading.kind == "modelled" else reading.kind


# --- watch -------------------------------------------------------------------------------------


def _add_watch(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser("watch", help="live view", description="Shows power until Ctrl-C.")
    _add_meters(parser)
    parser.add_argument("--interval", type=_seconds, default=1.0, metavar="S", help="(default: 1)")
    parser.add_argument("--count", type=int, metavar="N", help="end after N lines a meter")
    parser.set_defaults(action=watch)


def watch(arguments: argparse.Namespace) -> int:
    live = sys.stdout.isatty()
    with _opened(arguments.meter) as meters:
        slowest_s = max(meter.native_period_s for meter in meters)
        # A window of fewer than two readings says nothing.
        window_s = max(2.0 * slowest_s, arguments.interval)
        keep_s = 10.0 * window_s
        with Sampler(meters, _NOWHERE, arguments.rate, keep_s=keep_s) as sampler:
            try:
                _watch(sampler, window_s, arguments.interval, arguments.count, live)
            except KeyboardInterrupt:
                print()
    return EXIT_DONE


def _watch(
    sampler: Sampler, window_s: float, interval_s: float, count: int | None, live: bool
) -> None:
    shown = 0
    number = 0
    while count is None or number < count:
        number += 1
        time.sleep(interval_s)
        now_s = time.monotonic()
        readings = sampler.energy(now_s - window_s, now_s)
        if live and shown:
            raw(sys.stdout).write(f"\x1b[{shown}A\x1b[J")
        for reading in readings:
            print(_watch_line(reading), flush=True)
        shown = len(readings)


def _watch_line(reading: EnergyReading) -> str:
    head = f"{time.strftime('%H:%M:%S')}  {reading.meter:12}{reading.domain:8}"
    if reading.power_w is None:
        return f"{head}{'-':>11}    {'; '.join(reading.reasons)[:90]}"
    estimate = "" if reading.kind == "measured" else f"  {_kind_word(reading)}"
    return f"{head}{reading.power_w:11.2f} W{estimate}{'  doubtful' if reading.doubtful else ''}"


# --- calibrate ---------------------------------------------------------------------------------


def _add_calibrate(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "calibrate", help="find a log's clock offset by load pulses",
        description="Loads all CPUs in pulses of some seconds and finds them in a log. Where the "
        "log can be had only later: `--save FILE` now, `--meter csv:... --pulses FILE` then.",
    )  # fmt: skip
    parser.add_argument("--meter", metavar="SPEC", help="the log: csv:FILE,map=...")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep when the pulses were")
    parser.add_argument("--pulses", type=Path, metavar="FILE", help="use pulses that were saved")
    parser.add_argument("--count", type=int, default=alignment.PULSES, help="(default: 10)")
    parser.add_argument(
        "--search", type=_seconds, default=alignment.SEARCH_S, metavar="S",
        help="how far off the clock may be (default: 60)",
    )  # fmt: skip
    parser.set_defaults(action=calibrate)


def calibrate(arguments: argparse.Namespace) -> int:
    if arguments.meter is None and arguments.save is None:
        raise RefusedError("name the log with --meter csv:..., or keep the pulses with --save")
    if arguments.count < 2:
        raise RefusedError("--count: two pulses at least")
    if arguments.save is not None:
        try:
            arguments.save.open("a").close()  # before a minute of pulses is spent
        except OSError as error:
            raise RefusedError(f"--save {arguments.save}: {error.strerror}") from error
    meter = None if arguments.meter is None else _log(arguments.meter)
    pulses = _load_pulses(arguments.pulses) if arguments.pulses else None
    if pulses is None:
        print(f"{arguments.count} load pulses, about {arguments.count * 7} s", file=sys.stderr)
        pulses = alignment.make_pulses(arguments.count)
    if arguments.save is not None:
        body = {"schema_version": 1, "pulses_unix_s": [[p.start_s, p.end_s] for p in pulses]}
        arguments.save.write_text(json.dumps(body) + "\n", encoding="utf-8")
    if meter is None:
        return EXIT_DONE
    times_s, (values,) = meter.logged()
    # The pulses are on the wall clock, the log's times on the monotonic one.
    shift_s = time.monotonic() - time.time()
    known = [(t, v) for t, v in zip(times_s, values, strict=True) if v == v]
    found = alignment.find_offset(
        [t for t, _ in known],
        [v for _, v in known],
        [alignment.Pulse(p.start_s + shift_s, p.end_s + shift_s) for p in pulses],
        arguments.search,
    )
    print(
        f"the log's clock is {found.offset_s:+.2f} s ± {found.uncertainty_s:.2f} s ahead "
        f"(load {found.contrast_w:+.1f} W); add to the spec (to an offset_s that is there):"
    )
    print(f"offset_s={found.offset_s:.2f}")
    return EXIT_DONE


def _log(spec: str) -> LoggedMeter:
    try:
        (meter,) = open_meters([spec])
    except (PowerError, ValueError) as error:
        raise RefusedError(str(error)) from error
    if not isinstance(meter, LoggedMeter) or meter.channels[0].quantity != "power_w":
        close_meters([meter])
        raise RefusedError(f"{spec}: this meter needs no calibration; it is for logs of power")
    return meter


def _load_pulses(path: Path) -> list[alignment.Pulse]:
    try:
        pulses = [
            alignment.Pulse(TIMESTAMP.checked(a, "a pulse"), TIMESTAMP.checked(b, "a pulse"))
            for a, b in inputs.read_json(path)["pulses_unix_s"]
        ]
        if not all(p.start_s < p.end_s for p in pulses) or not all(
            before.end_s < after.start_s for before, after in pairwise(pulses)
        ):
            raise LimitError("pulses that overlap, or end before they start")
        return pulses
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RefusedError(f"{path}: no pulses that --save wrote ({error})") from error


# --- serve -------------------------------------------------------------------------------------


def _add_serve(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "serve", help="power and energy for Prometheus, on loopback",
        description="Serves /metrics in Prometheus' text format until Ctrl-C.",
    )  # fmt: skip
    _add_meters(parser)
    parser.add_argument("--address", default="127.0.0.1", help="a loopback address")
    parser.add_argument("--port", type=int, default=9797, help="(default: 9797)")
    parser.set_defaults(action=serve)


def serve(arguments: argparse.Namespace) -> int:
    with _opened(arguments.meter) as meters:
        sampler = Sampler(meters, _NOWHERE, arguments.rate, keep_s=prometheus.KEEP_S)
        try:
            server = prometheus.server(
                prometheus.Totals(sampler), arguments.address, arguments.port
            )
        except PowerError as error:
            raise RefusedError(str(error)) from error
        with sampler, server:
            print(f"http://{arguments.address}:{server.server_address[1]}/metrics", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return EXIT_DONE
    return EXIT_DONE


# --- several machines ----------------------------------------------------------------------------


def _add_node(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "node", help="a rank of an MPI program, with the energy of its node",
        description="Put in front of the program in a call of mpirun or srun. The first rank of "
        "each node records the node's energy from its start to its end in DIR/HOST.json, and the "
        "samples in DIR/HOST.csv.gz; the others just run. `eeio power sum` adds the nodes "
        "(docs/cluster.md).",
        epilog="exit codes: the program's own; 2 wrong usage or no meter, nothing ran",
    )  # fmt: skip
    _add_meters(parser)
    parser.add_argument("folder", type=Path, metavar="DIR", help="on a file system of all nodes")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    parser.set_defaults(action=record_node)


def record_node(arguments: argparse.Namespace) -> int:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise RefusedError("which program? `eeio power node DIR -- PROGRAM [ARGUMENT]...`")
    if cluster.local_rank() != 0:
        try:
            os.execvp(words[0], words)
        except OSError as error:
            raise RefusedError(f"{words[0]}: {error.strerror}") from error
    node = socket.gethostname()
    path = arguments.folder / f"{node}.json"
    try:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        # What an earlier program left must not be taken for this one's.
        path.unlink(missing_ok=True)
        with _opened(arguments.meter) as meters, tempfile.TemporaryDirectory() as folder:
            begun = cluster.clocks()
            # Copied only afterwards: the nodes' folder may be on the disks that are measured.
            samples = Path(folder) / "power.csv.gz"
            with signals_raise("so is the command", (signal.SIGTERM,)):
                recording = record(words, meters, samples, rate_hz=arguments.rate)
            shutil.copyfile(samples, cluster.samples_path(path))
        part = path.with_suffix(".part")
        told = {**to_json(recording), "node": node, **cluster.place(begun)}
        part.write_text(json.dumps(told, indent=1) + "\n")
        part.replace(path)
    except (OSError, PowerError, RefusedError) as error:
        raise RefusedError(f"{node}: {error}") from error
    # An invalid reading stands in the file: another code would end the other nodes' ranks.
    return recording.exit_code


def _add_sum(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "sum", help="the energy of several nodes together",
        description="Adds what `eeio power node` wrote, per power domain: energies add, limits of "
        "error in quadrature; coverage is the worst node's. A node that is missing or invalid "
        "makes a domain invalid.",
        epilog="exit codes: 0 done; 2 a file cannot be used; 3 a sum is invalid",
    )  # fmt: skip
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--nodes", type=int, metavar="N", help="how many there have to be")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(action=show_sum)


def show_sum(arguments: argparse.Namespace) -> int:
    if arguments.nodes is not None and arguments.nodes != len(arguments.files):
        raise RefusedError(f"{len(arguments.files)} files for {arguments.nodes} nodes")
    total = cluster.add([cluster.load(path) for path in arguments.files])
    if arguments.json:
        body = {
            "schema_version": _SUM_SCHEMA,
            "nodes": list(total.nodes),
            "duration_s": total.duration_s,
            "readings": [reading_json(reading) for reading in total.readings],
        }
        print(json.dumps(body, indent=1))
    else:
        print(f"{len(total.nodes)} nodes, {total.duration_s:.3f} s: {', '.join(total.nodes)}")
        for reading in total.readings:
            print(_line(reading))
            for reason in reading.reasons:
                print(f"{'':12}{reason}")
    valid = bool(total.readings) and all(reading.valid for reading in total.readings)
    return EXIT_DONE if valid else EXIT_DONE_WITH_INVALID_RUNS


# --- shared ------------------------------------------------------------------------------------


def _add_meters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--meter", action="append", metavar="SPEC",
        help="a meter, such as rapl or wattsup:/dev/ttyUSB0; several times for several "
        "(default: auto; `eeio power list`)",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=_rate, default=SAMPLE_RATE_HZ, metavar="HZ",
        help=f"readings a second, where the meter can (default: {SAMPLE_RATE_HZ:g})",
    )  # fmt: skip


@contextmanager
def _opened(specs: Sequence[str] | None) -> Iterator[tuple[Meter, ...]]:
    try:
        source = open_source(tuple(specs or ()), estimates_allowed=False)
    except PowerError as error:
        raise RefusedError(str(error)) from error
    if not source.meters:
        raise RefusedError(f"{source.reason}; `eeio power list` shows what each meter needs")
    try:
        yield source.meters
    finally:
        close_meters(source.meters)


def _number(convert: Callable[[str], float], text: str, what: str) -> float:
    try:
        value = convert(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= DURATION.most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value


def _seconds(text: str) -> float:
    return _number(float, text, "a number of seconds above 0")


def _rate(text: str) -> float:
    return _number(float, text, "a number of readings a second above 0")
