"""A tree of source-like files, archived, unpacked, copied or compressed: eeio.json.

    workload.py grow directory=DIR files=N
    workload.py cool directory=DIR action=tar|untar|rsync|zstd|copy
    workload.py run directory=DIR action=... copy=data|reflink eeio=FILE

Stands alone: it runs with nothing but Python's standard library. File k of the tree has 1 to 19
KiB, evenly, 10 KiB in the mean, of lines of C that are put together at random from one seed; 50
files are in a folder. The phase lasts from the start of the command until it returned, and its
bytes are those of the tree's files, whatever the command made of them; one file is one operation.
A copy by reflinks shares the blocks and moves no data, so it has no bytes and no bandwidth: it is a
metadata operation with a rate of files, and the size of the files is the metric `shared_bytes`.
None of these commands flushes. What it made is checked afterwards. Times are CLOCK_MONOTONIC.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

IN_A_FOLDER = 50
WORDS = (
    "buffer",
    "count",
    "index",
    "length",
    "offset",
    "page",
    "queue",
    "request",
    "sector",
    "size",
)
LIMIT_S = 86_400
REFLINK = {"data": "never", "reflink": "always"}
COPIES = ("untar", "rsync", "copy")


def line(chosen):
    first, second, third = chosen.choices(WORDS, k=3)
    return f"\tif ({first} > {chosen.randrange(1 << 16)})\n\t\t{second}->{third} = {first};\n"


def grow(directory, files):
    chosen = random.Random(1)
    lines = [line(chosen) for _ in range(5000)]
    for number in range(files):
        path = directory / f"eeio-archive.tree/{number // IN_A_FOLDER}/{number}.c"
        if number % IN_A_FOLDER == 0:
            path.parent.mkdir(parents=True)
        size = chosen.randrange(1024, 19 * 1024 + 1)
        text = "".join(chosen.choices(lines, k=size // 20))
        path.write_text(text[:size], encoding="ascii")


def command(directory, action, copy):
    tree, out, archive = (directory / f"eeio-archive.{name}" for name in ("tree", "out", "tar"))
    return {
        "tar": ["tar", "-cf", archive, "-C", tree, "."],
        "untar": ["tar", "-xf", archive, "-C", out],
        # One of both, so that what is measured does not depend on the file system.
        "copy": ["cp", "-a", f"--reflink={REFLINK[copy]}", f"{tree}/.", out],
        "rsync": ["rsync", "-a", f"{tree}/", f"{out}/"],
        "zstd": ["tar", "-cf", f"{archive}.zst", "-I", "zstd -q -T1", "-C", tree, "."],
    }[action]


def execute(directory, action, copy="data"):
    try:
        done = subprocess.run(
            command(directory, action, copy), stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"eeio-archive: action={action}: {error}")
    if done.returncode:
        sys.exit(f"eeio-archive: action={action} ended with {done.returncode}")


def cool(directory, action):
    """What the action reads and writes to is there, on the device, and out of the page cache."""
    if action == "untar":
        execute(directory, "tar")
    if action in COPIES:
        (directory / "eeio-archive.out").mkdir()
    subprocess.run(["sync", "-f", directory], timeout=LIMIT_S, check=True)
    for path in directory.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def version(program):
    done = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    return (done.stdout.strip().splitlines() or [f"{program} tells no version"])[0][:200]


def counted(folder):
    """Files below a folder, and their bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*.c")]
    return len(sizes), sum(sizes)


def run(directory, action, copy):
    start_s = time.monotonic()
    execute(directory, action, copy)
    end_s = time.monotonic()
    files, size = counted(directory / "eeio-archive.tree")
    invalid = []
    if action in COPIES:
        made, out_bytes = counted(directory / "eeio-archive.out")
        if (made, out_bytes) != (files, size):
            invalid.append(f"{made} files of {out_bytes} bytes came of {files} of {size}")
    else:
        name = "eeio-archive.tar" + (".zst" if action == "zstd" else "")
        out_bytes = (directory / name).stat().st_size
        if (out_bytes < size) != (action == "zstd"):
            invalid.append(f"the archive has {out_bytes} bytes, of files of {size}")
    shared = action == "copy" and copy == "reflink"
    program = {"untar": "tar", "copy": "cp"}.get(action, action)
    return {
        "schema_version": 1,
        "phases": [
            {
                "name": "archive",
                "operation": "metadata" if shared else "mixed",
                "spatiality": "none" if shared else "mixed",
                "request_size_bytes": None,
                "bytes_moved": 0 if shared else size,
                "start_monotonic_s": start_s,
                "end_monotonic_s": end_s,
                "bandwidth_bytes_per_s": None if shared else size / (end_s - start_s),
                "metrics": {
                    "operations": files,
                    "operations_per_s": files / (end_s - start_s),
                    "shared_bytes" if shared else "out_bytes": out_bytes,
                },
                "invalid": invalid,
            }
        ],
        "notes": [version(name) for name in dict.fromkeys(("tar", program))],
    }


def main(words):
    factors = dict(word.split("=", 1) for word in words[1:])
    directory = Path(factors["directory"])
    try:
        if words[0] == "grow":
            grow(directory, int(factors["files"]))
        elif words[0] == "cool":
            cool(directory, factors["action"])
        else:
            result = run(directory, factors["action"], factors["copy"])
            (phase,) = result["phases"]
            print(f"archive rate: {phase['metrics']['operations_per_s']:.3f} operations/s")
            if phase["bandwidth_bytes_per_s"] is not None:
                print(f"archive bandwidth: {phase['bandwidth_bytes_per_s'] / 1e6:.6f} MB/s")
            Path(factors["eeio"]).write_text(json.dumps(result), encoding="ascii")
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"eeio-archive: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
