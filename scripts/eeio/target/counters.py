"""What the block layer counted, and whether it agrees with what a tool claims."""

from eeio.target.filesystem import BlockDevice
from eeio_results.record import DeviceCounters, Experiment
from eeio_results.tools.capture import PhaseResult

_SECTOR_BYTES = 512  # the unit of the stat file, whatever the device's own sectors are
# The device may merge, journal and read ahead, but it cannot move less than was asked of it.
_DIRECT_SHARE = 0.98
_BUFFERED_SHARE = 0.90


def read_counters(device: BlockDevice) -> DeviceCounters:
    """Bytes read and written since boot (Documentation/block/stat.rst, fields 3 and 7)."""
    fields = (device.sysfs / "stat").read_text(encoding="ascii").split()
    return DeviceCounters(int(fields[2]) * _SECTOR_BYTES, int(fields[6]) * _SECTOR_BYTES)


def disagreements(
    experiment: Experiment,
    phases: tuple[PhaseResult, ...],
    before: DeviceCounters,
    after: DeviceCounters,
    file_bytes: int | None,
) -> dict[str, str]:
    """Per operation (`read`, `write`), why the device's counters contradict the tool's claim.

    The counters span the run and the sync after it, so claims are summed per operation; a mixed
    phase claims what its metrics `bytes_read` and `bytes_written` say, one of metadata nothing.
    Through the page cache a byte that is written twice may reach the device once, so no more than
    `file_bytes` is then expected.
    """
    claimed = {"read": 0.0, "write": 0.0}
    for phase in phases:
        if phase.operation == "metadata":
            continue  # what a file system writes for a file is its own business
        if phase.operation == "mixed":
            claimed["read"] += phase.metrics.get("bytes_read", 0)
            claimed["write"] += phase.metrics.get("bytes_written", 0)
        else:
            claimed[phase.operation] += phase.bytes_moved
    moved = {
        "read": after.read_bytes - before.read_bytes,
        "write": after.written_bytes - before.written_bytes,
    }
    buffered = experiment.cache.buffer == "on"
    found = {}
    for operation, claim in claimed.items():
        expected = claim
        if buffered and file_bytes is not None:
            expected = min(claim, file_bytes)
        if moved[operation] < (_BUFFERED_SHARE if buffered else _DIRECT_SHARE) * expected:
            found[operation] = (
                f"the device moved {moved[operation]} bytes of the {expected:.0f} that the "
                f"tool's {operation} claims: it was served from a cache or from unwritten extents"
            )
    return found
