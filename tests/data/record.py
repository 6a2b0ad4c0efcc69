"""Records real tool output for the parser tests: python -m tests.data.record DIRECTORY

Runs each profile on a small file in DIRECTORY and keeps the invocation, as the runner keeps it,
under result-parsers/eeio_parsers/TOOL/outputs/VERSION/CASE. fio's bandwidth and latency logs are
left out. What other people's results may hold, and failures, are recorded from the bare tools under
VERSION/other.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.profiles.harness import Installed

PARSERS = Path(__file__).parents[2] / "result-parsers/eeio_parsers"

CASES = (
    ("fio", "read", "operation=read spatiality=sequential request_size=128k file_size=64m"),
    ("fio", "random-write", "operation=write spatiality=random request_size=4k file_size=16m"),
    ("fio", "mixed", "operation=mixed spatiality=random request_size=4k file_size=16m"),
    ("fio", "strided", "operation=read spatiality=strided request_size=64k file_size=64m"),
    ("fio", "two-processes", "operation=read request_size=64k processes=2 file_size=64m"),
    ("iozone", "read", "operation=read request_size=64k file_size=64m"),
    ("iozone", "write", "operation=write request_size=1m file_size=64m buffer=on"),
    ("iozone", "random", "operation=mixed spatiality=random request_size=64k file_size=64m"),
    ("iozone", "strided", "operation=read spatiality=strided request_size=64k file_size=64m"),
    (
        "iozone",
        "two-processes",
        "operation=mixed spatiality=random request_size=64k file_size=64m processes=2",
    ),
    (
        "iozone",
        "write-not-flushed",
        "operation=write request_size=1m file_size=64m buffer=on flush=off",
    ),
    (
        "iozone",
        "64-processes",
        "operation=write request_size=32k file_size=8m buffer=on processes=64",
    ),
    (
        "iozone",
        "64-processes-not-flushed",
        "operation=write request_size=32k file_size=8m buffer=on processes=64 flush=off",
    ),
    ("bonnie", "direct", "request_size=4k file_size=512m buffer=off"),
    ("bonnie", "buffered", "request_size=64k file_size=256m buffer=on"),
    ("bonnie", "characters", "request_size=64k file_size=256m buffer=on characters=4m"),
    ("lmbench", "all", "memory_size=16m memory_limit=16m latency_size=2m repetitions=1"),
    ("lmbench", "syscall", "tests=syscall repetitions=3"),
    ("io500", "debug", "processes=2 data=32m files=1000"),
)

# tool, file, command
OTHERS = (
    (
        "fio",
        "normal.txt",
        "fio --name=job --filename=f --size=8m --rw=randread --bs=4k --ioengine=psync --direct=1",
    ),
    (
        "fio",
        "normal-two-jobs.txt",
        "fio --name=job --filename=f --size=8m --rw=randrw --bs=4k --ioengine=psync --numjobs=2",
    ),
    (
        "fio",
        "two-jobs.json",
        "fio --name=job --filename=f --size=8m --rw=read --bs=1m --numjobs=2 --output-format=json",
    ),
    (
        "fio",
        "no-space.json",
        "fio --name=job --filename=/dev/full --size=8m --rw=write --bs=1m --output-format=json",
    ),
    ("iozone", "all-tests.txt", "iozone -i 0 -i 1 -i 2 -i 3 -i 4 -i 5 -s 4m -r 64k -f f"),
    ("iozone", "missing-file.txt", "iozone -i 1 -+n -w -s 8m -r 4k -f nothing"),
    ("iozone", "operations.txt", "iozone -i 0 -O -s 4m -r 64k -f f"),
    ("iozone", "stonewalled.txt", "iozone -i 0 -+n -t 2 -s 8m -r 64k -F f g"),
    (
        "iozone",
        "16-stonewalled.txt",
        "iozone -i 0 -+n -t 16 -s 128k -r 32k -F " + " ".join(f"f{n}" for n in range(16)),
    ),
)


def record(directory: Path) -> None:
    """All cases, in place of what was kept of the same version before."""
    for tool, case, arguments in CASES:
        profile = Installed(tool, directory / "install" / tool, directory / "files")
        if not (profile.home / "tool.conf").exists():
            named = {k: os.environ[k] for k in ("EEIO_IO500",) if k in os.environ}
            done = profile.install(**named, code=None)
            if done.returncode != 0:
                sys.exit(done.stderr)
        conf = dict(
            line.split("=", 1) for line in (profile.home / "tool.conf").read_text().splitlines()
        )
        prepared = profile.script("pre.sh", *arguments.split(), code=None)
        if prepared.returncode != 0:
            sys.exit(prepared.stderr)
        # Measured elsewhere, then moved: fio's report names the folder of its logs.
        output = directory / "output" / tool / case
        capture = profile.capture(
            output, dict(argument.split("=", 1) for argument in arguments.split())
        )
        for log in output.glob("*.log"):
            log.unlink()
        (output / "command").write_text(f"eeio-{tool} {arguments}\n")
        place = PARSERS / tool / "outputs" / conf["version"].removeprefix("fio-") / case
        shutil.rmtree(place, ignore_errors=True)
        shutil.move(output, place)
        print(f"{place.relative_to(PARSERS)}: exit status {capture.exit_code}")
    for tool, name, command in OTHERS:
        (version,) = (PARSERS / tool / "outputs").glob("3.*")
        (version / "other").mkdir(exist_ok=True)
        bare = subprocess.run(
            command.split(),
            cwd=directory / "files",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        (version / "other" / name).write_bytes(bare.stdout)
        (version / "other" / f"{name}.command").write_text(command + "\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
