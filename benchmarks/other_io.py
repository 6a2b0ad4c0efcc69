"""How often other I/O on a drive is named: short runs of fio on a loop device, with and without it.

    python -m benchmarks.other_io DIR [--clean 1000] [--foreign 100] [--filesystem ext4]

Needs root, fio and a loop device with direct I/O. Each run takes about 0.5 s, and is judged by the
probe that judges the runs of a campaign. Runs alternate between reads, writes and both, between
sequential, random and strided, 4 KiB to 1 MiB, with direct I/O and through the page cache, from
which the file was dropped. In the second part another fio reads or writes two times the size of the
file meanwhile, with direct I/O, in another file.
"""

import argparse
import itertools
import os
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eeio.machine import caches, image, other_io
from eeio.machine.filesystem import BlockDevice, block_device, mount_of
from eeio.measure.campaign.probes import OtherIo
from eeio.record import tools
from eeio.record.design import PlannedExperiment
from eeio.record.run import OTHER_IO, CacheLayers, Experiment, Run
from eeio.record.tools.capture import Capture, ToolResult

FILE_BYTES = 32 << 20
FOREIGN_BYTES = 2 * FILE_BYTES
STEP_BYTES = 1 << 20
"""Between strided requests."""
PATTERNS = (("read", "sequential"), ("randread", "random"), ("write", "sequential"),
            ("randwrite", "random"), ("rw", "sequential"), ("randrw", "random"),
            (f"read:{STEP_BYTES}", "strided"))  # fmt: skip
VERDICTS = ("invalid", "named", "not judged", "clean")
CASES = [
    (rw, spatiality, request, buffer)
    for (rw, spatiality), request, buffer in itertools.product(
        PATTERNS, (4096, 65536, 1 << 20), ("off", "on")
    )
]


@contextmanager
def mounted(folder: Path, filesystem: str) -> Iterator[tuple[Path, BlockDevice]]:
    """A new file system on an image in `folder`, on a loop device with direct I/O."""
    path, point = folder / "image", folder / "mounted"
    point.mkdir()
    subprocess.run(["fallocate", "--length", str(800 << 20), str(path)], check=True)
    attach = ["losetup", "--find", "--show", "--direct-io=on", str(path)]
    done = subprocess.run(attach, check=True, capture_output=True, text=True)
    node = Path(done.stdout.strip())
    try:
        subprocess.run([*image.MKFS[filesystem], str(node)], check=True)
        subprocess.run(["mount", str(node), str(point)], check=True)
        try:
            device = block_device(node)
            assert device is not None
            yield point, device
        finally:
            subprocess.run(["umount", str(point)], check=True)
    finally:
        subprocess.run(["losetup", "--detach", str(node)], check=True)


def fio(path: Path, rw: str, request: int, direct: bool, size: int, output: Path) -> list[str]:
    return [
        "fio", "--name=x", f"--filename={path}", f"--rw={rw}", f"--bs={request}",
        f"--size={size}", f"--direct={int(direct)}", "--ioengine=psync", "--end_fsync=1",
        "--runtime=1", "--output-format=json", f"--output={output}",
    ]  # fmt: skip


def one_run(
    point: Path, device: BlockDevice, case: tuple[str, str, int, str], foreign: str | None,
    folder: Path,
) -> str:  # fmt: skip
    """`invalid` or `named` for other I/O, `not judged`, or `clean`."""
    rw, spatiality, request, buffer = case
    kind = rw.removeprefix("rand").partition(":")[0]
    operation = "mixed" if kind == "rw" else kind
    experiment = Experiment(
        "filesystem", "fio", operation, spatiality, request, CacheLayers(buffer),  # type: ignore[arg-type]
        flush=None if operation == "read" else "end",
    )  # fmt: skip
    planned = PlannedExperiment(experiment, "eeio-fio-1.0.0", {}, "x", "", FILE_BYTES)
    # Of this file only: without the programs in the page cache each run would take a second more.
    caches.flush(point, None)
    with (point / "own").open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    mount = mount_of(point)
    target = other_io.Target(mount, other_io.readahead_bytes(device, mount))
    probe = OtherIo([device], planned, target)
    command = fio(point / "own", rw, request, buffer == "off", FILE_BYTES, folder / "fio.json")
    if spatiality == "strided":  # once through the file, as the profile does
        command.append(f"--io_size={FILE_BYTES // (STEP_BYTES + request) * request}")
    probe.start()
    beside = None
    if foreign is not None:
        other = fio(point / "other", foreign, 1 << 20, True, FOREIGN_BYTES, folder / "other.json")
        beside = subprocess.Popen([a for a in other if not a.startswith("--runtime")])
    started_s, utc_s = time.monotonic(), time.time()
    subprocess.run(command, check=True, cwd=folder)
    ended_s = time.monotonic()
    caches.flush(point, None)
    if beside is not None:
        beside.wait()
    probe.stop(ended_s)
    run = Run(experiment, 1, 0, "quick", "", started_s, ended_s - started_s, 0, (), "raw")
    capture = Capture(folder, {}, 0, started_s, ended_s, utc_s)
    result: ToolResult = probe.add_to_result(tools.parse("fio", capture), run)
    if any(phase.invalid for phase in result.phases):
        return "invalid"
    remark = probe.add_to(run).remarks.get(OTHER_IO)
    if remark is None:
        return "clean"
    return "not judged" if remark.startswith(other_io.NOT_JUDGED) else "named"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--clean", type=int, default=1000)
    parser.add_argument("--foreign", type=int, default=100)
    parser.add_argument("--filesystem", default="ext4", choices=["ext4", "xfs", "btrfs"])
    arguments = parser.parse_args()
    drawn = random.Random(1)
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        folder = Path(name)
        with mounted(folder, arguments.filesystem) as (point, device):
            for file, size in (("own", FILE_BYTES), ("other", FOREIGN_BYTES)):
                fill = fio(point / file, "write", 1 << 20, True, size, folder / "fill.json")
                subprocess.run([a for a in fill if not a.startswith("--runtime")], check=True)
            os.sync()
            for label, count, others in (
                ("clean", arguments.clean, [None]),
                ("foreign", arguments.foreign, ["read", "write", "randread", "randwrite"]),
            ):
                verdicts: Counter[str] = Counter()
                for number in range(count):
                    case, foreign = CASES[number % len(CASES)], drawn.choice(others)
                    verdict = one_run(point, device, case, foreign, folder)
                    verdicts[verdict] += 1
                    if verdict != ("clean" if foreign is None else "invalid"):
                        print(f"  {verdict}: {case}, other: {foreign}", flush=True)
                counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS)
                print(f"{label}: {counts} of {count} runs", flush=True)


if __name__ == "__main__":
    main()
