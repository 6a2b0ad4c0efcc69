"""Work, a pause, work: with the drive's power saving in the pause, and without it.

After Panadero et al. 2012, figures 4 and 5. What is measured is the pause and the work after it,
in which a drive that stood by spins up; the work before the pause brings both sides into the same
state. Both sides of a pair follow each other, in random order, so that what drifts is in both.
"""

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eeio.errors import EeioError
from eeio.machine.caches import flush, read_direct
from eeio.machine.filesystem import BlockDevice, backing_device, mounts
from eeio.machine.power_saving import AtaDrive, Drive
from eeio.machine.undo import UndoJournal
from eeio.measure import foreground
from eeio.measure.drives.states import energy_columns
from eeio.measure.power import recorded
from eeio.record.run import EnergyReading, mark
from eeio.record.windows import known
from eeio.report.document import Document
from eeio.report.table_and_plot import Table
from eeio.statistics.break_even import BreakEven, break_even
from eeio.units.number_text import number
from eeio_power.calibration import of_domain
from eeio_power.monitor import PowerMonitor
from eeio_power.samples import MeterInfo

SCHEMA_VERSION = 1

Work = Callable[[], None]

_UNSURE_EDGES = (
    "the energies are more uncertain, due to delay, edges and resolution of the meter, than what "
    "standing by saves or costs; measure the delay with `eeio meter calibrate`, or take a faster "
    "meter"
)
# More than a drive reads ahead; each read lies behind the one before it, so that no cache has it.
_READ_BYTES = 16 << 20


@dataclass(frozen=True)
class GapReading:
    """One pause and the work after it: `duration_s` is both, `work_s` the work alone. `invalid`
    says why it counts for nothing."""

    gap_s: float
    repetition: int
    saving: bool
    work_s: float
    duration_s: float
    energy: tuple[EnergyReading, ...]
    invalid: str | None


@dataclass(frozen=True)
class Saved:
    """The saving in one domain, as measured by one meter."""

    domain: str
    meter: str
    kind: str
    found: BreakEven


def measure(
    drive: Drive,
    gaps_s: Sequence[float],
    repetitions: int,
    work: Work,
    power: PowerMonitor,
    journal: UndoJournal,
    seed: int,
) -> list[GapReading]:
    """Every pause so many times with and without power saving, in random order. EeioError where the
    drive tells no state, keeps its power management on, or the work fails."""
    draw = random.Random(seed)
    pairs = [(gap_s, n) for gap_s in gaps_s for n in range(1, repetitions + 1)]
    draw.shuffle(pairs)
    found = []
    for gap_s, repetition in pairs:
        for saving in draw.sample((True, False), 2):
            found.append(_once(drive, gap_s, repetition, saving, work, power, journal))
    return found


def _once(
    drive: Drive,
    gap_s: float,
    repetition: int,
    saving: bool,
    work: Work,
    power: PowerMonitor,
    journal: UndoJournal,
) -> GapReading:
    with ExitStack() as stack:
        if not saving:
            stack.enter_context(drive.without_saving(journal))
        work()
        power.mark()
        start_s = time.monotonic()
        if saving:
            try:
                stack.enter_context(drive.saving(journal))
            except EeioError as error:
                return GapReading(gap_s, repetition, saving, 0.0, 0.0, (), str(error))
        late_s = time.monotonic() - start_s - gap_s
        time.sleep(max(0.0, -late_s))
        invalid = _doubt(drive, saving)
        if late_s > 0:
            invalid = invalid or f"entering standby took {gap_s + late_s:.2g} s"
        work_start_s = time.monotonic()
        work()
        end_s = time.monotonic()
        power.mark()
        if saving and drive.is_saving():
            invalid = invalid or "the work did not wake the drive: a cache answered it"
    energy = tuple(map(known, recorded(power.energy(start_s, end_s))))
    return GapReading(
        gap_s, repetition, saving, end_s - work_start_s, end_s - start_s, energy, invalid
    )


def _doubt(drive: Drive, saving: bool) -> str | None:
    if drive.is_saving() == saving:
        return None
    if saving:
        return f"something woke the drive: it was {drive.state()} at the end of the pause"
    if not isinstance(drive, AtaDrive):
        return f"the drive went to {drive.state()} by itself"
    return (
        f"the drive went to {drive.state()} by itself: `hdparm -S 0` switches off its timer "
        "(its value cannot be read, so eeio does not change it)"
    )


Accuracies = Mapping[tuple[str, str], float]
"""Share by domain and meter: a factor of all energies of that meter, which moves no break-even."""


def accuracies(meters: Sequence[MeterInfo]) -> Accuracies:
    """The least of each domain, where its channels differ or it is calibrated."""
    shares: dict[tuple[str, str], float] = {}
    for meter in meters:
        for channel in meter.channels:
            if channel.in_domain_total:
                key = channel.domain, meter.name
                calibrated = of_domain(meter.calibrations, channel.domain)
                limit = math.inf
                if calibrated is not None:
                    limit = calibrated.limit_relative
                shares[key] = min(shares.get(key, math.inf), channel.accuracy_relative, limit)
    return shares


def saved(readings: Sequence[GapReading], accuracies: Accuracies | None = None) -> list[Saved]:
    """Of each meter and domain: energy without saving less that with it, pair by pair."""
    sides: dict[tuple[str, str, str], dict[tuple[float, int], dict[bool, _Energy]]] = {}
    for reading in readings:
        for energy in reading.energy:
            of_meter = sides.setdefault(energy.key, {})
            if reading.invalid is not None or not energy.valid or energy.doubtful:
                continue
            if energy.energy_j is not None and energy.uncertainty_j is not None:
                pair = of_meter.setdefault((reading.gap_s, reading.repetition), {})
                share = (accuracies or {}).get((energy.domain, energy.meter), 0.0)
                other_j2 = energy.uncertainty_j**2 - (share * energy.energy_j) ** 2
                pair[reading.saving] = _Energy(energy.energy_j, math.sqrt(max(0.0, other_j2)))
    return [
        Saved(*key, _break_even([(gap_s, pair) for (gap_s, _), pair in pairs.items()]))
        for key, pairs in sides.items()
    ]


@dataclass(frozen=True)
class _Energy:
    energy_j: float
    unsure_j: float
    """Its uncertainty without the accuracy: delay, edges, resolution."""


def _break_even(pairs: Sequence[tuple[float, Mapping[bool, _Energy]]]) -> BreakEven:
    """Of both sides of each pair. A delay changes all savings alike, so repetitions do not show
    it: the interval reaches from that of the largest possible savings to that of the least."""
    both = [(gap_s, pair[False], pair[True]) for gap_s, pair in pairs if len(pair) == 2]
    found, most, least = (
        break_even(
            [
                (gap_s, off.energy_j - on.energy_j + sign * (off.unsure_j + on.unsure_j))
                for gap_s, off, on in both
            ]
        )
        for sign in (0.0, 1.0, -1.0)
    )
    if found.pause_s is None:
        return found
    if most.low_s is None or least.high_s is None:
        return replace(
            found, pause_s=None, low_s=None, high_s=None, beyond=False, reason=_UNSURE_EDGES
        )
    return replace(found, low_s=most.low_s, high_s=least.high_s)


def check_gaps(gaps_s: Sequence[float], repetitions: int) -> None:
    """EeioError for pauses that do not differ enough."""
    if not gaps_s or any(not 0 < gap_s <= 86_400 for gap_s in gaps_s):
        raise EeioError("--gap: seconds above 0 and a day at most, with commas between")
    if len(set(gaps_s)) != len(gaps_s):
        raise EeioError("--gap: a pause is repeated; use --repetitions")
    if not 1 <= repetitions <= 1000:
        raise EeioError("--repetitions: 1 to 1000")


def reads(node: Path, device: BlockDevice) -> Work:
    """Reads of 16 MiB, each behind the one before it."""
    length = min(_READ_BYTES, device.size_bytes)
    offset = 0

    def work() -> None:
        nonlocal offset
        read_direct(node, length, offset)
        offset += length
        if offset + length > device.size_bytes:
            offset = 0

    return work


def command(
    arguments: Sequence[str], node: Path, device: BlockDevice, journal: UndoJournal
) -> Work:
    """A program, and the flush of what it wrote."""

    def work() -> None:
        code = foreground.run(arguments, journal, to_stderr=True)
        if code != 0:
            raise EeioError(f"{arguments[0]} ended with {code}: failed work is not measured")
        # What it wrote is to be on the drive, not to wake it in the pause; what others wrote to
        # other drives is not this one's work.
        for done in (flush(None, node), *(flush(folder, None) for folder in _folders(device))):
            if done.error is not None:
                raise EeioError(f"cannot flush the data of {arguments[0]}: {done.error}")

    return work


def _folders(device: BlockDevice) -> list[Path]:
    """Where file systems of the drive are mounted."""
    found = []
    for mount in mounts():
        with suppress(OSError):
            below = backing_device(mount.mount_point)[0]
            if below is not None and below.disk_sysfs == device.disk_sysfs:
                found.append(mount.mount_point)
    return found


def document(
    node: Path, found: Sequence[GapReading], seed: int, accuracies: Accuracies
) -> Document:
    """Means of each domain and pause, the break-even idle times, and what was not used."""
    of_meters = saved(found, accuracies)

    def body() -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "device": str(node),
            "seed": seed,
            "gaps": [asdict(reading) for reading in found],
            "break_even": [
                {"domain": s.domain, "meter": s.meter, "kind": s.kind, **asdict(s.found)}
                for s in of_meters
            ],
        }

    return Document(
        f"Pauses of {node}",
        (_table(node, found, of_meters),),
        body,
        lambda: [
            {
                "device": str(node),
                "gap_s": reading.gap_s,
                "repetition": reading.repetition,
                "saving": reading.saving,
                "work_s": reading.work_s,
                "duration_s": reading.duration_s,
                **energy_columns(energy, reading.invalid),
            }
            for reading in found
            for energy in reading.energy or (None,)
        ],
    )


def _table(node: Path, found: Sequence[GapReading], of_meters: Sequence[Saved]) -> Table:
    rows = []
    for saving in of_meters:
        for gap_s in sorted({reading.gap_s for reading in found}):
            rows += [_row(saving, gap_s, with_saving, found) for with_saving in (False, True)]
    header = ("Domain", "Pause (s)", "Standing by", "n", "Energy (J)", "Work (s)")
    notes = [
        "energy of the pause and the work after it, means; "
        "work: the time that it took, a spin-up included",
        *(_cell(one) for one in of_meters),
        *dict.fromkeys(
            f"not used: pause {r.gap_s:g} s, repetition {r.repetition}: {r.invalid}"
            for r in found
            if r.invalid is not None
        ),
        *dict.fromkeys(
            f"not used: pause {r.gap_s:g} s, repetition {r.repetition}: {reason}"
            for r in found
            for e in r.energy
            if not e.valid or e.doubtful
            for reason in e.reasons
        ),
    ]
    return Table(
        f"Pauses of {node} with power saving and without",
        header,
        tuple(rows),
        frozenset((1, 3, 4, 5)),
        "\n".join(notes),
    )


def _row(
    of_meter: Saved, gap_s: float, with_saving: bool, found: Sequence[GapReading]
) -> tuple[str, ...]:
    taken = [
        (energy.energy_j, reading.work_s)
        for reading in found
        if (reading.gap_s, reading.saving) == (gap_s, with_saving) and reading.invalid is None
        for energy in reading.energy
        if (energy.domain, energy.meter) == (of_meter.domain, of_meter.meter)
        and energy.valid
        and not energy.doubtful
        and energy.energy_j is not None
    ]
    saving = "no"
    if with_saving:
        saving = "yes"
    return (
        f"{mark(of_meter.kind)}{of_meter.domain} ({of_meter.meter})",
        f"{gap_s:g}",
        saving,
        str(len(taken)),
        number(statistics.fmean(joules for joules, _ in taken)) if taken else "-",
        number(statistics.fmean(work_s for _, work_s in taken)) if taken else "-",
    )


def _cell(of_meter: Saved) -> str:
    found, name = of_meter.found, f"{of_meter.domain} ({of_meter.meter})"
    if found.pause_s is None:
        return f"break-even of {name}: none; {found.reason}"
    assert found.low_s is not None and found.high_s is not None
    assert found.saved_w is not None and found.cost_j is not None
    beyond = ""
    if found.beyond:
        beyond = ", beyond the pauses that were measured"
    return (
        f"break-even of {name}: {number(found.pause_s)} s [{number(found.low_s)} - "
        f"{number(found.high_s)}]{beyond}: standing by saves {number(found.saved_w)} W and costs "
        f"{number(found.cost_j)} J, n {found.n}"
    )
