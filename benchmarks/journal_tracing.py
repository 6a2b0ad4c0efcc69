"""What tracing the journal costs a buffered write, and whether 64 threads overrun its buffers.

    python benchmarks/journal_tracing.py DIRECTORY [--rounds 15]

4 KiB writes over the same 128 KiB of a file on a loop ext4 below DIRECTORY: untraced, with the
journal's events alone (goal: at most 10 % more), and with system calls; in turn, each the fastest
of a batch, medians over the rounds. Then IOzone with 64 threads is traced: events lost (goal: 0).
Needs root. Takes image and mount away again.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from eeio.machine import image
from eeio.machine.undo import UndoJournal
from eeio.measure.journal.trace import JournalTracer, find_ext4
from eeio.traces import jbd2

WRITER = """
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
	static char block[4096];
	double best_ns = 1e9;
	int file = open(words[count - 1], O_CREAT | O_WRONLY | O_TRUNC, 0600);
	for (int batch = 0; batch < 20; batch++) {
		struct timespec a, b;
		clock_gettime(CLOCK_MONOTONIC, &a);
		for (int n = 0; n < 20000; n++)
			if (pwrite(file, block, sizeof block, (n % 32) * (off_t)sizeof block) < 0) return 1;
		clock_gettime(CLOCK_MONOTONIC, &b);
		double ns = ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / 20000;
		if (ns < best_ns) best_ns = ns;
	}
	printf("%f\\n", best_ns);
	return 0;
}
"""


def write_ns(program: Path, directory: Path) -> float:
    done = subprocess.run(
        [str(program), str(directory / "file")], check=True, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    undo = UndoJournal()
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory("", "eeio-journal-", arguments.directory)
            )
        )
        stack.callback(undo.undo_all)
        source, program = folder / "writer.c", folder / "writer"
        source.write_text(WRITER)
        subprocess.run(["cc", "-O2", "-o", str(program), str(source)], check=True)
        directory, _ = image.make_on_loop("ext4", folder, 64 << 20, undo)
        target = find_ext4(directory)
        found: dict[str, list[float]] = {"untraced": [], "journal": [], "journal and calls": []}
        for _ in range(arguments.rounds):
            for name, values in found.items():
                if name == "untraced":
                    values.append(write_ns(program, directory))
                    continue
                output = folder / "trace.gz"
                with JournalTracer(target, output, undo, calls=name != "journal") as trace:
                    trace.follow(os.getpid())
                    values.append(write_ns(program, directory))
                    trace.unfollow()
        bare = statistics.median(found["untraced"])
        for name, values in found.items():
            middle = statistics.median(values)
            print(f"{name}: {middle:.0f} ns a 4 KiB write, ratio {middle / bare:.3f}")
        threads = 64
        output = folder / "iozone.gz"
        with JournalTracer(target, output, undo) as trace:
            trace.follow(os.getpid())
            subprocess.run(
                ["iozone", "-i", "0", "-+n", "-e", "-x", "-s", "128k", "-r", "4k",
                 "-t", str(threads), "-F", *(f"f{n}" for n in range(threads))],
                cwd=directory, check=True, stdout=subprocess.DEVNULL, timeout=120,
            )  # fmt: skip
            trace.unfollow()
        traced = jbd2.load(output)
        print(
            f"IOzone, {threads} threads, 4 KiB records: {len(traced.calls)} calls, "
            f"{traced.overruns} events lost, {len(traced.commits)} commits"
        )


if __name__ == "__main__":
    sys.exit(main())
