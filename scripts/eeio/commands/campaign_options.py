"""Options that `run` and `plan` share, and their values."""

import argparse
import secrets
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import get_args

from eeio.arguments import arrange
from eeio.campaign import sweep
from eeio.commands.amounts import decimal_bytes
from eeio_limits import LimitError
from eeio_limits.quantities import COUNT, REPETITIONS, Quantity
from eeio_power.monitor import COUNTER_RATE_HZ, SAMPLE_RATE_HZ
from eeio_results.campaign import AdaptiveProtocol, Options, PilotUse
from eeio_results.errors import EeioError
from eeio_results.units import parse_size


def add(parser: argparse.ArgumentParser) -> None:
    """Adds SUITE and the options of a campaign, without their groups (see `arranged`)."""
    add = parser.add_argument
    add("suite", metavar="SUITE", help="suite name (see `eeio list`) or folder")
    add("--directory", metavar="DIR", help="folder for the test files")
    add("--device", metavar="DEV", help="raw block device for the device level, only read")
    add("--erase", metavar="DEV", help="confirm that DEV may be overwritten")
    add(
        "--lose", metavar="NAME", action="append", default=[],
        help="existing signature to destroy, e.g. ext4:LABEL; repeatable",
    )  # fmt: skip
    add("--drive-label", metavar="NAME", help="drive name in tables and comparisons")
    add("--hash-serial", action="store_true", help="store a hash of the drive's serial number")
    add(
        "--filesystem", metavar="LIST", default="",
        help="ext4,xfs,btrfs to create on the erased device or on loop images",
    )  # fmt: skip
    add(
        "--disk-cache", choices=("leave", "on", "off", "both"), default="leave",
        help="write cache of the drive during writes (default: leave)",
    )  # fmt: skip
    add(
        "--allow-memory-filesystem", action="store_true",
        help="allow tmpfs or overlay (marks all runs invalid)",
    )  # fmt: skip

    add(
        "--preset", default="standard",
        help="quick (test only), standard, paper or adaptive (default: standard)",
    )  # fmt: skip
    add("--repetitions", metavar="N", type=repetitions, help="runs of each experiment")
    add("--seed", metavar="N", type=seed, help="repeat the random order of a campaign")
    add("--settle", metavar="S", type=seconds, help="pause before each run")
    add("--idle", metavar="S", type=seconds, help="length of the idle baseline")
    add("--work", metavar="SIZE", type=_work, help="bytes to move per run, e.g. 1g (2^30)")
    add(
        "--min-phase", metavar="S", type=seconds,
        help="shortest phase; pilots size the work, shorter phases are not ranked",
    )  # fmt: skip
    add(
        "--max-written", metavar="BYTES", type=decimal_bytes,
        help="limit of written bytes with test files, e.g. 10G (10^10)",
    )  # fmt: skip
    add(
        "--precondition", metavar="PERCENT", type=_precondition,
        help="writes before measuring, in percent of the target, e.g. 200%%",
    )  # fmt: skip
    add("--drop-caches-by", metavar="COMMAND", help="command that empties the servers' caches")
    add_share_machine(parser)

    add(
        "--sweep", metavar="FACTOR=VALUES", type=_sweep, action="append", default=[],
        help="factor values, e.g. threads=1..256, file_size=1m..9m+2m; repeatable",
    )  # fmt: skip
    add(
        "--frequency", metavar="LIST", default="",
        help="processor frequencies: lowest, highest, all or 1.6GHz,2.4GHz",
    )  # fmt: skip
    for name, text in (("smt", "simultaneous multithreading"), ("turbo", "turbo")):
        add(f"--{name}", metavar="LIST", default="", help=f"{text}: on, off, or on,off")
    add(
        "--variant", metavar="LIST", default="",
        help="journal study: ext4, nojc, fast_commit, delayjc",
    )  # fmt: skip
    add(
        "--windows-of", metavar="PRESET",
        help="journal study: preset for the delays (paper: 16 ms and 1 ms)",
    )  # fmt: skip
    add(
        "--sysfs-root", metavar="DIR", default="/",
        help="set frequency, SMT and turbo under DIR instead (for testing)",
    )  # fmt: skip

    add(
        "--meter", metavar="SPEC", action="append", default=[],
        help="power meter, repeatable: auto (default), none, demo, rapl, hwmon, ...",
    )  # fmt: skip
    add("--allow-estimates", action="store_true", help="model the power if there is no meter")
    add(
        "--server-power", metavar="COMMAND", action="append", default=[],
        help="command that reports a storage server's power; repeatable",
    )  # fmt: skip
    add(
        "--rate", type=_rate, metavar="HZ",
        help=f"readings per second, at most 100 (default: {SAMPLE_RATE_HZ:g}; counters "
        f"{COUNTER_RATE_HZ:g})",
    )  # fmt: skip
    add("--see-order", action="store_true", help="record the block-layer request order")
    add("--trace-journal", action="store_true", help="count ext4 journal commits (needs root)")

    add(
        "--adaptive", action="store_true",
        help="repeat until --precision is reached; shorten pauses at stable power",
    )  # fmt: skip
    for name, text in (
        ("precision", "half-width of the 95 %% interval to reach"),
        ("indifference", "equivalence margin"),
        ("floor", "smallest effect to report"),
    ):
        default = getattr(AdaptiveProtocol, name)
        add(f"--{name}", metavar="SHARE", type=share, help=f"{text} (default: {default:g})")
    add(
        "--pilot", choices=get_args(PilotUse),
        help="pilots for run length: once (default), each campaign, stored, none",
    )  # fmt: skip


def arranged(
    parser: argparse.ArgumentParser,
    groups: Mapping[str, Sequence[str]] = MappingProxyType({}),
    rare: Sequence[str] = (),
) -> None:
    """Groups the options of `add`, and those of the command itself."""
    arrange(
        parser,
        {
            "target": (
                "--directory", "--device", "--erase", "--lose", "--filesystem", "--disk-cache",
                "--drive-label", "--hash-serial", "--allow-memory-filesystem",
            ),
            "protocol": (
                "--preset", "--repetitions", "--settle", "--idle", "--work", "--min-phase",
                "--max-written", "--precondition", "--seed", "--drop-caches-by", "--share-machine",
            ),
            "factors": (
                "--sweep", "--frequency", "--smt", "--turbo", "--variant", "--windows-of",
                "--sysfs-root",
            ),
            "power": (
                "--meter", "--allow-estimates", "--server-power", "--rate", "--see-order",
                "--trace-journal",
            ),
            "adaptive campaigns": (
                "--adaptive", "--precision", "--indifference", "--floor", "--pilot",
            ),
            **groups,
        },
        (
            "--lose", "--drive-label", "--hash-serial", "--allow-memory-filesystem", "--settle",
            "--idle", "--min-phase", "--precondition", "--seed", "--drop-caches-by",
            "--share-machine", "--smt", "--turbo", "--variant", "--windows-of", "--sysfs-root",
            "--server-power", "--rate", "--see-order", "--trace-journal", "--indifference",
            "--floor", "--pilot", *rare,
        ),
    )  # fmt: skip


def add_share_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--share-machine",
        action="store_true",
        help="allow parallel campaigns (no energy for overlapping runs)",
    )


def options_of(arguments: argparse.Namespace) -> Options:
    """The stored form. Without --seed a new one is drawn, and stored with the campaign."""
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


def drawn(requested: int | None) -> int:
    """The requested seed, or a new one."""
    return secrets.randbelow(2**31) if requested is None else requested


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def repetitions(text: str) -> int:
    return _complete(REPETITIONS, text)


def seed(text: str) -> int:
    # The range of campaign.json; -5 would draw the order of 5.
    return _complete(COUNT, text)


def _complete(quantity: Quantity, text: str) -> int:
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
        raise argparse.ArgumentTypeError(f"{text}: no work; give the bytes per run, such as 1g")
    return size_bytes


def _precondition(text: str) -> int:
    percent = int(text.removesuffix("%"))
    if not 100 <= percent <= 1000:
        raise argparse.ArgumentTypeError(
            f"{text}: from 100% (the measured area is written once) to 1000%"
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
