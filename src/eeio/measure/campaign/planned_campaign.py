"""A planned campaign: its design with the profiles that run it, the room and the time it needs."""

import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eeio.errors import RejectedError
from eeio.machine.below import check_directory, check_not_in_memory, check_storage
from eeio.machine.drive import elsewhere
from eeio.machine.filesystem import backing_device, backing_devices, block_device, mount_of
from eeio.machine.image import OVERHEAD_BYTES, in_the_way
from eeio.measure.campaign.file_sizes import files_of_a_process
from eeio.measure.campaign.safety import SCRATCH, check_folder, used_bytes
from eeio.measure.profiles.profile import Profile
from eeio.measure.profiles.suite import size_of
from eeio.record.design import Design, Options, PlannedExperiment

DEFAULT_RUNTIME_S = 5.0
WRITING = ("write", "mixed", "metadata")
"""Operations that write to the device, whatever else they do."""
# A tool's start and end, the drop of the caches, the device's write-back: about this much.
_PER_RUN_OVERHEAD_S = 0.7
# For a forecast only: an unmeasured device moves at least about this many bytes per second.
_ASSUMED_BANDWIDTH_BYTES_PER_S = 150e6


@dataclass(frozen=True, kw_only=True)
class Plan(Design):
    """A campaign's design with the profiles that run it: everything it will run, in its order."""

    profiles: Mapping[str, Profile]
    zone_bytes: int | None = None
    """Size of a zone, if the device is written in zones."""
    as_named: Options | None = None
    """The options with links to devices, which campaign.json keeps: /dev/disk/by-id leads to the
    same drive after the next boot, and /dev/sda perhaps to another one."""

    def to_json(self) -> dict[str, Any]:
        stored = self
        if self.as_named is not None:
            stored = replace(self, options=self.as_named)
        return Design.to_json(stored)

    @property
    def made_volumes(self) -> list[str]:
        """The file systems that are made for the campaign."""
        return sorted({planned.volume for planned in self.experiments} - {""})

    @property
    def why_nothing(self) -> str | None:
        """Why it has no experiment; None where it has one."""
        if self.experiments:
            return None
        reasons = dict.fromkeys(left_out.reason for left_out in self.not_measured)
        name = Path(self.suite).name
        return f"no experiment of {name} can be measured: {'; '.join(reasons)}"

    @property
    def most_bytes_written(self) -> int:
        """An upper bound: the bytes of all runs, and the prefill of every file once."""
        return self.prefill_bytes + sum(self.most_written(run.experiment) for run in self.runs)

    @property
    def prefill_bytes(self) -> int:
        """Bytes written before the first measurement: each test file, or the measured part of a
        device that may be erased, multiplied by its `precondition`."""
        written: dict[tuple[str, str], int] = {}
        for planned in self.experiments:
            on_device = planned.experiment.target == "device"
            if not on_device or self.options.erase:
                volume = planned.volume
                if on_device:
                    volume = "device"
                key = (volume, planned.profile)
                written[key] = max(written.get(key, 0), prefilled_bytes(planned))
        return sum(written.values())

    @property
    def files(self) -> dict[tuple[str, str], int]:
        """(volume, profile) -> bytes of the test files that the profile keeps there."""
        sizes: dict[tuple[str, str], int] = {}
        for planned in self.experiments:
            if planned.experiment.target != "device":
                key = (planned.volume, planned.profile)
                sizes[key] = max(sizes.get(key, 0), planned.file_bytes)
        return sizes

    def room_bytes(self, volume: str) -> int:
        """Bytes that must be free on a volume: of each profile its test files, or the `room` that
        its preset states."""
        return sum(
            max(size, self._stated_room_bytes(profile))
            for (where, profile), size in self.files.items()
            if where == volume
        )

    def _stated_room_bytes(self, identifier: str) -> int:
        profile = self.profiles[identifier]
        text = profile.preset(self.sizes_preset).get("room", "0")
        return size_of(profile.tool, "room", text)

    def most_written(self, planned: PlannedExperiment) -> int:
        """Maximum bytes that one of its runs writes."""
        preset = self.profiles[planned.profile].preset(self.sizes_preset)
        passes = float(preset.get("passes_written", "1"))
        operation = planned.experiment.operation
        if self.zone_bytes is not None and planned.experiment.target == "device":
            passes *= 2  # zones that a write has left are filled again
        written_bytes = 0
        if operation in WRITING:
            written_bytes = int(planned.file_bytes * passes)
        return written_bytes + self.filled_again_bytes(planned)

    def filled_again_bytes(self, planned: PlannedExperiment) -> int:
        """Bytes that fill its file or device before each of its runs."""
        on_device = planned.experiment.target == "device"
        if planned.factors.get("fill") != "each" or (on_device and not self.options.erase):
            return 0
        return prefilled_bytes(planned)

    @property
    def expected_s(self) -> float:
        """A forecast: times that the presets set, sizes over an assumed bandwidth, and pauses."""
        total = self.protocol.idle_s + self.prefill_bytes / _ASSUMED_BANDWIDTH_BYTES_PER_S
        for run in self.runs:
            factors = run.experiment.factors
            by_size = run.experiment.file_bytes / _ASSUMED_BANDWIDTH_BYTES_PER_S
            runtime = float(factors.get("runtime_s", 0)) or by_size or DEFAULT_RUNTIME_S
            by_time = runtime
            if by_size:
                by_time = min(runtime, by_size)
            by_time = max(by_time, _computing_s(factors))
            preset = self.profiles[run.experiment.profile].preset(self.sizes_preset)
            if "each_s" in preset:
                by_time = float(preset["each_s"]) * files_of_a_process(factors)
            refill_s = self.filled_again_bytes(run.experiment) / _ASSUMED_BANDWIDTH_BYTES_PER_S
            total += refill_s + by_time + self.protocol.settle_s + _PER_RUN_OVERHEAD_S
            if run.experiment.experiment.processes > 1:
                total += float(preset.get("parallel_pause_s", 0))
        return total

    def timeout_s(self, planned: PlannedExperiment) -> float:
        """Time limit of a run: far more than a slow disk needs."""
        if "timeout_s" in planned.factors:  # set by the user (`eeio bench`)
            return float(planned.factors["timeout_s"])
        slowest_bytes_per_s = 1e6
        runtime_s = float(planned.factors.get("runtime_s", "0"))
        # A disk that needs 0.1 s to create a file and take it away again is slow.
        creating_s = 0.1 * files_of_a_process(planned.factors)
        waiting_s = _computing_s(planned.factors)
        moving_s = 3 * planned.file_bytes / slowest_bytes_per_s
        return 120 + 2 * (runtime_s + waiting_s) + moving_s + creating_s

    def check_room(self) -> None:
        """Rejects a missing or too small target before the first run."""
        options = self.options
        if options.directory is None:
            if any(
                planned.volume == "" and planned.experiment.target != "device"
                for planned in self.experiments
            ):
                raise RejectedError(
                    "this suite needs a directory: give --directory DIR on the disk"
                )
            return
        directory = Path(options.directory)
        check_folder(directory)
        needed = max(0, math.ceil(self.room_bytes("") * 1.05) - self._left_bytes())
        if options.device is None:
            for filesystem in self.made_volumes:
                if (there := in_the_way(filesystem, directory)) is not None:
                    raise RejectedError(
                        f"{there} exists; another campaign may be using it. If not, delete it"
                    )
                size = self.room_bytes(filesystem)
                needed += size + size // 8 + OVERHEAD_BYTES
        check_directory(directory, needed, options.allow_memory_filesystem)

    def room_to_grow(self, planned: PlannedExperiment) -> int:
        """The largest size that the experiment's test files may be given, in bytes.

        For a directory: its present files and four fifths of the free space, shared with the files
        of the other profiles, which may grow too. For a raw device: its size.
        """
        options = self.options
        if planned.experiment.target == "device":
            device = None
            if options.device:
                device = block_device(Path(options.device))
            if not device:
                return 0
            return device.size_bytes
        if options.directory is None:
            return 0
        free = shutil.disk_usage(options.directory).free + self._left_bytes()
        return int(0.8 * free / max(1, len(self.files)))

    def check_described(self, root: Path) -> str:
        """As `check_room` for a captured machine, as far as its description allows. Returns the
        directory's file system as text, or an empty string without one."""
        options = self.options
        if options.directory is None:
            self.check_room()
            return ""
        directory = Path(options.directory)
        mount = mount_of(directory, root)
        check_storage(directory, mount, options.allow_memory_filesystem)
        device, reason = backing_device(directory, root)
        devices = backing_devices(directory, root)
        check_not_in_memory(devices, str(directory), options.allow_memory_filesystem)
        on = f"no device: {reason}"
        if device:
            on = str(device.node)
        if device is not None and (away := elsewhere(device)) is not None:
            on += f"; {away}"
        return f"{directory}: {mount.filesystem} on {on}"

    def _left_bytes(self) -> int:
        """Size of existing test files of its profiles, from an interrupted start."""
        scratch = Path(self.options.directory or "") / SCRATCH
        paths: set[Path] = set()
        for profile in self.profiles.values():
            for top in scratch.glob(f"{profile.name}*"):
                paths |= {top, *top.rglob("*")}
        return used_bytes(paths)


def _computing_s(factors: Mapping[str, str]) -> float:
    """Time of a program that computes between checkpoints at intervals. 0 for values that are not
    numbers, which the profile rejects."""
    values = (factors.get("interval_s", "0"), factors.get("checkpoints", "0"))
    if not all(re.fullmatch("[0-9]{1,8}", value) for value in values):
        return 0.0
    return float(values[0]) * float(values[1])


def prefilled_bytes(planned: PlannedExperiment) -> int:
    """Bytes written to its test file, or the device, before it is measured."""
    return planned.file_bytes * int(planned.factors.get("precondition", "100")) // 100
