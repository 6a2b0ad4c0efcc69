"""Why an experiment of a suite is not run here."""

from collections.abc import Sequence
from pathlib import Path

from eeio.machine import caches
from eeio.machine.filesystem import backing_device, block_device
from eeio.measure.profiles.suite import LeftOut, SuiteEntry
from eeio.record.design import Options
from eeio.record.run import Experiment

_POLLED = ("io_uring_polled", "io_uring_combined")


def why_not(
    options: Options,
    left_out: Sequence[LeftOut],
    entry: SuiteEntry,
    experiment: Experiment,
    root: Path,
) -> str | None:
    """The reason of the preset, of the drive's write cache, or that the device is only read; None
    if it is run."""
    for group in left_out:
        if group.matches(entry):
            return group.reason
    if experiment.cache.disk is not None:
        reason = _why_cache_stays(options, experiment, root)
        if reason is not None:
            return reason
    reason = _why_not_on_drive(options, experiment, root)
    if reason is not None:
        return reason
    if experiment.target == "device" and experiment.operation != "read" and not options.erase:
        return (
            f"{options.device} is only read: to measure writes, repeat it with --erase, which "
            "destroys its data"
        )
    return None


def _why_not_on_drive(options: Options, experiment: Experiment, root: Path) -> str | None:
    """Why the drive cannot take direct requests of this size, or of this engine; None if it can."""
    device = None
    if options.device is not None:
        device = block_device(Path(options.device), root)
    elif options.directory is not None:
        device = backing_device(Path(options.directory), root)[0]
    if device is None:
        return None
    engine = dict(experiment.arguments).get("engine")
    if engine in _POLLED and not device.has_poll_queues:
        return (
            f"{device.node} has no poll queues, which engine={engine} requires (NVMe drives: "
            "nvme.poll_queues=4 on the kernel's command line)"
        )
    request_bytes, block_bytes = experiment.request_size_bytes, device.block_bytes
    if request_bytes is None or block_bytes is None or experiment.cache.buffer != "off":
        return None
    if request_bytes % block_bytes == 0:
        return None
    return (
        f"{device.node} has blocks of {block_bytes} bytes, and a direct request is a multiple of "
        "them"
    )


def why_not_on_zones(options: Options, experiment: Experiment) -> str | None:
    """Why a drive that is written in zones cannot take an experiment, or None."""
    operation, spatiality = experiment.operation, experiment.spatiality
    if experiment.target != "device":
        return None
    drive = f"{options.device} is a zoned drive (host-managed)"
    if operation in ("write", "mixed") and spatiality != "sequential":
        return f"{drive}: it accepts only sequential writes in each zone"
    if operation == "mixed":
        return f"{drive}: the writes would reset the zones that are read"
    if spatiality == "strided":
        return f"{drive}: a stride would meet the gaps at the ends of its zones"
    return None


def _why_cache_stays(options: Options, experiment: Experiment, root: Path) -> str | None:
    """Why the drive's write cache cannot be brought into the experiment's state, or None."""
    assert experiment.cache.disk is not None
    on_device = experiment.target == "device" or (options.filesystems and options.device)
    if on_device and options.device:
        device = block_device(Path(options.device), root)
    elif options.filesystems:
        return "a loop image has no write cache: name a device for --disk-cache"
    else:
        directory = None
        if options.directory:
            directory = Path(options.directory)
        device = None
        if directory:
            device = backing_device(directory, root)[0]
    if device is None:
        return "the target has no block device, so there is no write cache to switch"
    return caches.cannot_switch_write_cache(device, experiment.cache.disk)
