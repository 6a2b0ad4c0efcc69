"""The state in which a tool starts: empty page caches, and the caches that cannot be emptied."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError
from eeio.machine import caches
from eeio.machine.below import CacheBelow, caches_below
from eeio.machine.device import Zone, zero_share, zones_of
from eeio.machine.direct_io import why_file_not_direct
from eeio.machine.filesystem import (
    BlockDevice,
    further_devices,
    is_served_by_a_program,
    mount_of,
    zone_bytes,
)
from eeio.machine.undo import run_command
from eeio.measure.campaign.settling import Settled
from eeio.measure.campaign.volumes import Volume
from eeio.record.design import PlannedExperiment
from eeio.record.run import MEMORY_CACHE, STORAGE_CACHE, Experiment

# Real data has a zero block here and there.
_TOLERATED_ZERO_SHARE = 0.05
# A server with much memory needs a while to write it back.
_DROP_S = 300.0


@dataclass(frozen=True)
class Dropped:
    """What was emptied, as text. `read_reason` tells why reads may have come from the page cache;
    `below_reason` from a cache below the drive, which even direct I/O passes."""

    cache_dropped: str | None = None
    read_reason: str | None = None
    below_reason: str | None = None


@dataclass(frozen=True)
class Prepared:
    """The state in which a tool starts."""

    dropped: Dropped
    prepare_s: float
    notes: tuple[str, ...] = ()
    settled: Settled | None = None
    caches: tuple[CacheBelow, ...] = ()
    """All caches below the drive."""
    never_durable: str | None = None
    """Why no flush shows that data are on the drive."""


def drop_caches(
    planned: PlannedExperiment,
    volume: Volume,
    raw_device: BlockDevice | None,
    below: Sequence[CacheBelow],
    drop_by: str | None,
) -> Dropped:
    """Empties the page cache of the test files, or of the raw device, and with the command
    `drop_by` those of servers."""
    node = None
    if raw_device is not None:
        node = raw_device.node
    state, reason = caches.drop(volume.test_files, node)
    below_reason = None
    through = remarks_of_caches(below).get(MEMORY_CACHE)
    if through is not None and not caches.drops_all():
        below_reason = f"reads may have been served {through} (run as root)"
    if drop_by is not None:
        run_command(["sh", "-c", drop_by], _DROP_S)
        state += f"; and by `{drop_by}`"
    if node is not None and planned.experiment.operation == "read":
        zone = zone_bytes(raw_device)
        reason = why_reads_are_zeros(node, planned.file_bytes, zone) or reason
    return Dropped(state, reason, below_reason)


def all_caches_below(
    experiment: Experiment, volume: Volume, devices: Sequence[BlockDevice]
) -> tuple[tuple[CacheBelow, ...], list[BlockDevice]]:
    """The caches below the file system and its drives, and these drives."""
    every = [*devices]
    if experiment.target != "device":
        every += further_devices(volume.served or volume.directory)
    of_devices = [cache for each in every for cache in caches_below(each)]
    return tuple(dict.fromkeys([*_caches_of_directory(experiment, volume), *of_devices])), every


def _caches_of_directory(experiment: Experiment, volume: Volume) -> list[CacheBelow]:
    """Those of a FUSE file system's program; the page cache, if direct I/O is requested on a file
    system that has none."""
    if experiment.target == "device":
        return []
    directory = (volume.served or volume.directory).resolve()
    mount = mount_of(directory)
    if is_served_by_a_program(mount):
        program = f"the program that serves {mount.mount_point} ({mount.filesystem})"
        return [CacheBelow(f"the caches of {program}", True)]
    if experiment.cache.buffer != "off":
        return []
    reason = why_file_not_direct(directory, mount)
    if reason is None:
        return []
    return [CacheBelow(f"the page cache: {reason}", False)]


def remarks_of_caches(found: Sequence[CacheBelow]) -> dict[str, str]:
    """The remarks on caches below the device."""
    kinds = ((MEMORY_CACHE, True), (STORAGE_CACHE, False))
    texts = {
        kind: ", ".join(cache.text for cache in found if cache.in_memory is in_memory)
        for kind, in_memory in kinds
    }
    return {kind: f"through {text}" for kind, text in texts.items() if text}


def why_reads_are_zeros(node: Path, length_bytes: int, zone: int | None) -> str | None:
    """Why reads of a device that could not be prefilled do not measure its medium, or None. `zone`:
    the size of its zones, bytes."""
    zones: list[Zone] = []
    if zone is not None:
        sectors = -(-length_bytes // 512)
        command = ["blkzone", "report", "-o", "0", "-l", str(sectors), str(node)]
        with suppress(EeioError):  # without it, gaps at the ends of zones count as zeros
            zones = zones_of(run_command(command))
    share = zero_share(node, length_bytes, zone or 0, zones)
    if share <= _TOLERATED_ZERO_SHARE:
        return None
    return (
        f"{share:.0%} of the first {length_bytes} bytes of {node} read as zeros: never written or "
        "trimmed, so reading them need not touch the medium; --erase lets eeio fill the device"
    )
