"""Options that `run` and `plan` share, and what is made of them."""

import argparse
import secrets
from typing import get_args

from eeio.campaign import sweep
from eeio.commands.amounts import decimal_bytes
from eeio_limits import LimitError
from eeio_limits.quantities import COUNT, REPETITIONS, Quantity
from eeio_power.monitor import COUNTER_RATE_HZ, SAMPLE_RATE_HZ
from eeio_results.campaign import Options, PilotUse
from eeio_results.errors import EeioError
from eeio_results.units import parse_size


def add(parser: argparse.ArgumentParser) -> None:
    """Adds SUITE and the options of a campaign."""
    parser.add_argument("suite", metavar="SUITE", help="a suite's name (`eeio list`) or folder")
    parser.add_argument(
        "--preset",
        default="standard",
        help="sizes, times and repetitions: quick (a check, not a measurement), standard, paper",
    )
    parser.add_argument("--directory", metavar="DIR", help="where the test files are written")
    parser.add_argument(
        "--device", metavar="DEV", help="raw block device for the device level; only read"
    )
    parser.add_argument(
        "--erase", metavar="DEV", help="the same device again: it may be WRITTEN OVER"
    )
    parser.add_argument(
        "--lose",
        metavar="NAME",
        action="append",
        default=[],
        help="what that device carries and may be lost, repeatable: ext4:LABEL, xfs:UUID, gpt, ... "
        "(`eeio plan` says what to name)",
    )
    parser.add_argument(
        "--drive-label", metavar="NAME", help="what the drive is called in tables and comparisons"
    )
    parser.add_argument(
        "--hash-serial",
        action="store_true",
        help="keep a hash of the drive's serial number or world wide name in its place",
    )
    parser.add_argument(
        "--filesystem",
        metavar="LIST",
        default="",
        help="make and measure these file systems (ext4,xfs,btrfs) on the erased device, "
        "or on loop images in the directory",
    )
    parser.add_argument(
        "--variant",
        metavar="LIST",
        default="",
        help="of a study of the journal: ext4, nojc, fast_commit, delayjc (default: the suite's)",
    )
    parser.add_argument(
        "--frequency",
        metavar="LIST",
        default="",
        help="each experiment at each of these: lowest, highest, all, or 1.6GHz,2.4GHz, with SMT "
        "and turbo off (default: the suite's, or as it is found)",
    )
    for name, words in (("smt", "simultaneous multithreading"), ("turbo", "turbo")):
        parser.add_argument(
            f"--{name}", metavar="LIST", default="",
            help=f"each experiment with {words} on, off, or both: on,off (default: as it is found)",
        )  # fmt: skip
    parser.add_argument(
        "--windows-of",
        metavar="PRESET",
        help="of such a study: how long delayjc holds, and whether it writes first, as that preset "
        "has it (paper: the paper's 16 ms and 1 ms, nothing written first)",
    )
    parser.add_argument(
        "--sweep",
        metavar="FACTOR=VALUES",
        type=_sweep,
        action="append",
        default=[],
        help="other values of a factor than the suite's, repeatable, each combination an "
        "experiment: threads=1..256 (doubled), file_size=1m..9m+2m, btio:class=A,B; threads, "
        "ranks, files, file_size, file_size_each, record_size, or a factor of a profile",
    )
    parser.add_argument(
        "--sysfs-root",
        metavar="DIR",
        default="/",
        help="set frequencies, SMT and turbo in the tree under DIR instead (for trials)",
    )
    parser.add_argument(
        "--disk-cache",
        choices=("leave", "on", "off", "both"),
        default="leave",
        help="the drive's write cache during writes (default: leave it as it is)",
    )
    parser.add_argument(
        "--meter",
        metavar="SPEC",
        action="append",
        default=[],
        help="power meter, repeatable: auto (default), none, rapl, hwmon, modelled, ...",
    )
    parser.add_argument(
        "--server-power", metavar="COMMAND", action="append", default=[],
        help="of a server behind the files, repeatable: its power counts with this machine's, by a "
        "command that runs `eeio power node -` there, as 'ssh nas eeio power node --meter rapl -'",
    )  # fmt: skip
    parser.add_argument(
        "--drop-caches-by", metavar="COMMAND",
        help="run by the shell before each run, after this machine's caches were dropped: empties "
        "those of the servers",
    )  # fmt: skip
    parser.add_argument(
        "--rate",
        type=_rate,
        metavar="HZ",
        help="readings a second, where the meter can, 100 at most (default: "
        f"{SAMPLE_RATE_HZ:g}; of energy counters {COUNTER_RATE_HZ:g} while a tool runs)",
    )
    parser.add_argument(
        "--min-phase",
        type=seconds,
        metavar="S",
        help="how long each phase should last: a pilot sizes the work so that it does; what is "
        "shorter all the same is not ranked (default: the suite's)",
    )
    parser.add_argument(
        "--see-order",
        action="store_true",
        help="tell the order in which requests reach the drive, by the kernel's block layer",
    )
    parser.add_argument(
        "--trace-journal",
        action="store_true",
        help="on ext4, count the journal's commits in each run, and the fsync calls that waited "
        "for one (as root); it costs each traced call some microseconds",
    )
    parser.add_argument(
        "--allow-estimates",
        action="store_true",
        help="without a meter, model the power and mark it ESTIMATE",
    )
    parser.add_argument(
        "--work",
        metavar="SIZE",
        type=_work,
        help="each run moves this much, however long it takes: 1g is 2^30 bytes (default: the "
        "suite's, or for the preset's time)",
    )
    parser.add_argument(
        "--max-written",
        metavar="BYTES",
        type=decimal_bytes,
        help="end before more than this is written, test files included; 10G is 10^10 bytes",
    )
    parser.add_argument(
        "--precondition",
        metavar="PERCENT",
        type=_precondition,
        help="of suites that write over what they measure before: how often, 200%% is twice",
    )
    parser.add_argument(
        "--adaptive",
        action="store_true",
        help="repeat only what is not known to --precision yet, and end pauses when the machine "
        "has settled (as the preset adaptive of most suites does)",
    )
    for name, words in (
        ("precision", "repeat until the 95 %% interval is within this to either side (0.03)"),
        ("indifference", "a smaller difference does not matter (0.05)"),
        ("floor", "no direction is told of a smaller difference (0.01)"),
    ):
        parser.add_argument(
            f"--{name}", metavar="SHARE", type=share, help=f"of an adaptive campaign: {words}"
        )
    parser.add_argument(
        "--pilot",
        choices=get_args(PilotUse),
        help="of an adaptive campaign: what tells how short a run may be: once (pilots, which are "
        "kept and used while machine, drive, kernel and tool are the same; the default), each "
        "(pilots of its own), stored (kept ones alone), none (no run is cut)",
    )
    parser.add_argument("--repetitions", metavar="N", type=repetitions, help="of each experiment")
    parser.add_argument("--seed", metavar="N", type=seed, help="repeats the random order")
    parser.add_argument("--settle", metavar="S", type=seconds, help="pause before each run")
    parser.add_argument("--idle", metavar="S", type=seconds, help="length of the idle baseline")
    add_share_machine(parser)
    parser.add_argument(
        "--allow-memory-filesystem",
        action="store_true",
        help="run on tmpfs or overlay all the same; every run is marked invalid",
    )


def add_share_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--share-machine",
        action="store_true",
        help="run while other campaigns with this option run (energies of overlapping runs are "
        "missing)",
    )


def options_of(arguments: argparse.Namespace) -> Options:
    """The stored form. Without --seed a new one is drawn, and kept with the campaign."""
    return Options(
        suite=arguments.suite,
        preset=arguments.preset,
        directory=arguments.directory,
        device=arguments.device,
        erase=arguments.erase,
        meters=tuple(arguments.meter),
        repetitions=arguments.repetitions,
        seed=drawn(arguments.seed),
        filesystems=_words(arguments.filesystem),
        disk_cache=arguments.disk_cache,
        allow_estimates=arguments.allow_estimates,
        allow_memory_filesystem=arguments.allow_memory_filesystem,
        drop_caches_by=arguments.drop_caches_by,
        server_power=tuple(arguments.server_power),
        settle_s=arguments.settle,
        idle_s=arguments.idle,
        variants=_words(arguments.variant),
        frequencies=_words(arguments.frequency),
        smt=_words(arguments.smt),
        turbo=_words(arguments.turbo),
        sysfs_root=arguments.sysfs_root,
        lose=tuple(arguments.lose),
        drive_label=arguments.drive_label,
        hash_serial=arguments.hash_serial,
        work_bytes=arguments.work,
        adaptive=arguments.adaptive,
        precision=arguments.precision,
        indifference=arguments.indifference,
        floor=arguments.floor,
        pilot=arguments.pilot,
        rate_hz=arguments.rate or SAMPLE_RATE_HZ,
        counter_rate_hz=arguments.rate or COUNTER_RATE_HZ,
        min_phase_s=arguments.min_phase,
        see_order=arguments.see_order,
        trace_journal=arguments.trace_journal,
        max_written_bytes=None if arguments.max_written is None else int(arguments.max_written),
        precondition_percent=arguments.precondition,
        sweeps=tuple(arguments.sweep),
        share_machine=arguments.share_machine,
        windows_of=arguments.windows_of,
    )


def drawn(asked_for: int | None) -> int:
    """The seed that was asked for, or a new one."""
    return secrets.randbelow(2**31) if asked_for is None else asked_for


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def repetitions(text: str) -> int:
    return _whole(REPETITIONS, text)


def seed(text: str) -> int:
    # What campaign.json can hold; -5 would draw the order of 5.
    return _whole(COUNT, text)


def _whole(quantity: Quantity, text: str) -> int:
    try:
        return quantity.whole_number(int(text))
    except LimitError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _rate(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text}: readings a second, from 0.1 to 100")
    return value


def _work(text: str) -> int:
    try:
        size_bytes = parse_size(text)
    except EeioError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if size_bytes == 0:
        raise argparse.ArgumentTypeError(f"{text}: no work; give what each run moves, such as 1g")
    return size_bytes


def _precondition(text: str) -> int:
    percent = int(text.removesuffix("%"))
    if not 100 <= percent <= 1000:
        raise argparse.ArgumentTypeError(
            f"{text}: from 100% (what is measured is written once) to 1000%"
        )
    return percent


def _sweep(text: str) -> str:
    try:
        return sweep.parse(text).asked
    except EeioError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--sweep ")) from error


def share(text: str) -> float:
    value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text}: a share below 1, such as 0.03 or 3%")
    return value


def seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < 86_400:
        raise argparse.ArgumentTypeError(f"{text}: seconds, from 0 to a day")
    return value
