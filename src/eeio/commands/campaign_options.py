"""Options that `run` and `plan` share, and their values."""

import argparse
import secrets
from typing import get_args

from eeio.commands.amounts import decimal_bytes
from eeio.commands.arguments import OptionGroup
from eeio.errors import EeioError, LimitError
from eeio.measure.campaign import sweep
from eeio.record.design import AdaptiveProtocol, Options, PilotUse
from eeio.units.quantities import COUNT, REPETITIONS, Quantity
from eeio.units.sizes import parse_size
from eeio_power.monitor import COUNTER_RATE_HZ, SAMPLE_RATE_HZ


def add(parser: argparse.ArgumentParser) -> None:
    """Adds SUITE and the options of a campaign, stored under the names of the fields of Options."""
    parser.add_argument("suite", metavar="SUITE", help="suite name (see `eeio list`) or folder")
    target = OptionGroup(parser, "target")
    target.add("--directory", metavar="DIR", help="folder for the test files")
    target.add("--device", metavar="DEV", help="raw block device for the device level, only read")
    target.add("--erase", metavar="DEV", help="confirm that DEV may be overwritten")
    target.rare(
        "--lose", metavar="NAME", action="append", default=[],
        help="existing signature to destroy, e.g. ext4:LABEL; repeatable",
    )  # fmt: skip
    target.add(
        "--filesystem", metavar="LIST", dest="filesystems", type=_parts, default=(),
        help="ext4,xfs,btrfs to create on the erased device or on loop images",
    )  # fmt: skip
    target.add(
        "--disk-cache", choices=("leave", "on", "off", "both"), default="leave",
        help="write cache of the drive during writes (default: leave)",
    )  # fmt: skip
    target.rare("--drive-label", metavar="NAME", help="drive name in tables and comparisons")
    target.rare(
        "--hash-serial", action="store_true", help="store a hash of the drive's serial number"
    )
    target.rare(
        "--allow-memory-filesystem", action="store_true",
        help="allow tmpfs or overlay (marks all runs invalid)",
    )  # fmt: skip

    protocol = OptionGroup(parser, "protocol")
    protocol.add(
        "--preset", default="standard",
        help="quick (test only), standard, paper or adaptive (default: standard)",
    )  # fmt: skip
    protocol.add("--repetitions", metavar="N", type=repetitions, help="runs of each experiment")
    protocol.rare(
        "--settle", metavar="S", dest="settle_s", type=seconds, help="pause before each run"
    )
    protocol.rare(
        "--idle", metavar="S", dest="idle_s", type=seconds, help="length of the idle baseline"
    )
    protocol.add(
        "--work", metavar="SIZE", dest="work_bytes", type=_work,
        help="bytes to move per run, e.g. 1g (2^30)",
    )  # fmt: skip
    protocol.rare(
        "--min-phase", metavar="S", dest="min_phase_s", type=seconds,
        help="shortest phase; pilots size the work, shorter phases are not ranked",
    )  # fmt: skip
    protocol.add(
        "--max-written", metavar="BYTES", dest="max_written_bytes",
        type=lambda text: int(decimal_bytes(text)),
        help="limit of written bytes with test files, e.g. 10G (10^10)",
    )  # fmt: skip
    protocol.rare(
        "--precondition", metavar="PERCENT", dest="precondition_percent", type=_precondition,
        help="writes before measuring, in percent of the target, e.g. 200%%",
    )  # fmt: skip
    protocol.rare("--seed", metavar="N", type=seed, help="repeat the random order of a campaign")
    protocol.rare(
        "--drop-caches-by", metavar="COMMAND", help="command that empties the servers' caches"
    )
    add_share_machine(protocol)

    factors = OptionGroup(parser, "factors")
    factors.add(
        "--sweep", metavar="FACTOR=VALUES", dest="sweeps", type=_sweep, action="append", default=[],
        help="factor values, e.g. threads=1..256, file_size=1m..9m+2m; repeatable",
    )  # fmt: skip
    factors.add(
        "--frequency", metavar="LIST", dest="frequencies", type=_parts, default=(),
        help="processor frequencies: lowest, highest, all or 1.6GHz,2.4GHz",
    )  # fmt: skip
    for name, text in (("smt", "simultaneous multithreading"), ("turbo", "turbo")):
        factors.rare(
            f"--{name}", metavar="LIST", type=_parts, default=(),
            help=f"{text}: on, off, or on,off",
        )  # fmt: skip
    factors.rare(
        "--variant", metavar="LIST", dest="variants", type=_parts, default=(),
        help="journal study: ext4, nojc, fast_commit, delayjc",
    )  # fmt: skip
    factors.rare(
        "--windows-of", metavar="PRESET",
        help="journal study: preset for the delays (paper: 16 ms and 1 ms)",
    )  # fmt: skip
    factors.rare(
        "--sysfs-root", metavar="DIR", default="/",
        help="set frequency, SMT and turbo under DIR instead (for testing)",
    )  # fmt: skip

    power = OptionGroup(parser, "power")
    power.add(
        "--meter", metavar="SPEC", dest="meters", action="append", default=[],
        help="power meter, repeatable: auto (default), none, demo, rapl, hwmon, ...",
    )  # fmt: skip
    power.add("--allow-estimates", action="store_true", help="model the power if there is no meter")
    power.rare(
        "--server-power", metavar="COMMAND", action="append", default=[],
        help="command that reports a storage server's power; repeatable",
    )  # fmt: skip
    power.rare(
        "--rate", type=_rate, metavar="HZ", dest="rate_hz",
        help=f"readings per second, at most 100 (default: {SAMPLE_RATE_HZ:g}; counters "
        f"{COUNTER_RATE_HZ:g})",
    )  # fmt: skip
    power.rare("--see-order", action="store_true", help="record the block-layer request order")
    power.rare(
        "--trace-journal", action="store_true", help="count ext4 journal commits (needs root)"
    )

    adaptive = OptionGroup(parser, "adaptive campaigns")
    adaptive.add(
        "--adaptive", action="store_true",
        help="repeat until --precision is reached; shorten pauses at stable power",
    )  # fmt: skip
    for name, text, add in (
        ("precision", "half-width of the 95 %% interval to reach", adaptive.add),
        ("indifference", "equivalence margin", adaptive.rare),
        ("floor", "smallest effect to report", adaptive.rare),
    ):
        default = getattr(AdaptiveProtocol, name)
        add(f"--{name}", metavar="SHARE", type=share, help=f"{text} (default: {default:g})")
    adaptive.rare(
        "--pilot", choices=get_args(PilotUse),
        help="pilots for run length: once (default), each campaign, stored, none",
    )  # fmt: skip


def add_share_machine(options: OptionGroup) -> None:
    options.rare(
        "--share-machine",
        action="store_true",
        help="allow parallel campaigns (no energy for overlapping runs)",
    )


def options_of(arguments: argparse.Namespace) -> Options:
    """The stored form. Without --seed a new one is drawn, and stored with the campaign."""
    made = {
        "seed": drawn(arguments.seed),
        "rate_hz": arguments.rate_hz or SAMPLE_RATE_HZ,
        "counter_rate_hz": arguments.rate_hz or COUNTER_RATE_HZ,
    }
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(arguments).items()
        if name in Options.__dataclass_fields__
    }
    return Options(**(given | made))


def drawn(requested: int | None) -> int:
    """The requested seed, or a new one."""
    return secrets.randbelow(2**31) if requested is None else requested


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


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
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _rate(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"{text}: readings a second, from 0.1 to 1000")
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
        return sweep.parse(text).requested
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
