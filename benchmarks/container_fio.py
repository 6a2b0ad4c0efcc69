"""fio's direct bandwidth in the image against fio on the machine, in pairs on one file of one
loop file system, the order within a pair drawn at random. A container should cost nothing."""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path


def fio(prefix: Sequence[str], file: Path, operation: str, runtime_s: int, size: str) -> float:
    """Bytes per second of one run, with the page cache written back and dropped before it."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")
    done = subprocess.run(
        [*prefix, "fio", "--name=one", f"--rw={operation}", "--bs=1m", "--ioengine=psync",
         "--direct=1", f"--size={size}", f"--runtime={runtime_s}", "--time_based", "--overwrite=1",
         "--eta=never", f"--filename={file}", "--output-format=json"],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    side = "write" if operation == "write" else "read"
    return float(json.loads(done.stdout)["jobs"][0][side]["bw_bytes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", default="eeio")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--runtime", type=int, default=4, help="of one run, s")
    parser.add_argument("--size", default="1g")
    arguments = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with tempfile.TemporaryDirectory(prefix="eeio-container-", dir="/var/tmp") as folder:
        image, disk = Path(folder) / "image", Path(folder) / "disk"
        disk.mkdir()
        with image.open("wb") as file:
            file.truncate(3 << 30)
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, timeout=60)
        subprocess.run(["mount", "-o", "loop", str(image), str(disk)], check=True, timeout=60)
        inside = ["podman", "run", "--rm", "--user=0:0", "--network=none", "--no-healthcheck",
                  f"--ulimit=nofile={files}:{files}", "--ulimit=nproc=4096:4096",
                  f"--volume={disk}:{disk}", "--entrypoint=", arguments.image]  # fmt: skip
        order = random.Random(1)
        try:
            fio([], disk / "file", "write", arguments.runtime, arguments.size)
            for operation in ("read", "write"):
                ratios = []
                for _ in range(arguments.pairs):
                    sides = {"host": list[str](), "container": inside}
                    names = order.sample(sorted(sides), 2)
                    rates = {
                        name: fio(sides[name], disk / "file", operation, arguments.runtime,
                                  arguments.size)
                        for name in names
                    }  # fmt: skip
                    ratios.append(rates["container"] / rates["host"])
                    print(", ".join(f"{n} {rates[n] / 1e6:.0f} MB/s" for n in names), flush=True)
                q1, median, q3 = statistics.quantiles(ratios, n=4, method="inclusive")
                print(f"{operation}: median ratio {median:.3f}, quartiles {q1:.3f} to {q3:.3f}")
        finally:
            subprocess.run(["umount", str(disk)], check=True, timeout=60)


if __name__ == "__main__":
    main()
