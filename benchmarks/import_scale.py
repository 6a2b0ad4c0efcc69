"""What results of other tools cost to import: time against json.loads, and memory.

Usage: import_scale.py [--files N] [--phases N] [--directory DIR]

The files are copies of an output of fio 3.41 (tests/data/imports) with other bandwidths and times,
in a folder (default: a temporary one). Seconds of processor time of `json.loads` of all, of
`eeio import --dry-run` and of `eeio import`; then the peak memory of an import of many phases.
"""

import argparse
import itertools
import json
import tempfile
import time
from pathlib import Path

from store_scale import eeio

OUTPUT = Path(__file__).parents[1] / "result-parsers/eeio_parsers/fio/outputs/jobs-3.41.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--phases", type=int, default=100_000)
    parser.add_argument("--directory", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        folder = Path(name)
        made = written(folder / "files", arguments.files)
        begin_s = time.process_time()
        for path in made:
            json.loads(path.read_bytes())
        loads_s = time.process_time() - begin_s
        print(f"json.loads of {len(made)} files of fio: {loads_s:.2f} s")
        for what, option in (("recognized", ["--dry-run"]), ("imported", ["--name", "files"])):
            took_s = eeio(
                f"{len(made)} files {what}", folder, "import", str(folder / "files"), *option
            )
            print(f"  {took_s / loads_s:.1f} times json.loads")
        many = written(folder / "many", -(-arguments.phases // phases(OUTPUT)))
        eeio(
            f"{len(many) * phases(OUTPUT)} phases imported", folder,
            "import", str(folder / "many"), "--name", "many",
        )  # fmt: skip


def written(folder: Path, count: int) -> list[Path]:
    """So many outputs; no two are equal, because a copy is imported once."""
    folder.mkdir()
    body = json.loads(OUTPUT.read_bytes())
    made = []
    for number in range(count):
        body["timestamp"] += 60
        body["timestamp_ms"] += 60_000
        path = folder / f"{number}.json"
        path.write_text(json.dumps(body, indent=2))
        made.append(path)
    return made


def phases(path: Path) -> int:
    """Operations that moved bytes, in all jobs."""
    jobs = json.loads(path.read_bytes())["jobs"]
    every = itertools.product(jobs, ("read", "write"))
    return sum(job[operation]["io_bytes"] > 0 for job, operation in every)


if __name__ == "__main__":
    main()
