"""Tries inputs: in a process of its own each piece of work, with an end to its time and memory."""

import base64
import gc
import hashlib
import json
import mmap
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fuzz.mutate import Files, mutated
from tests.fuzz.relations import unrelated
from tests.fuzz.sane import insane
from tests.fuzz.targets import Target, all_targets

LONGEST_S = 2.0
"""Of the processor's time, so that a busy machine makes no finding."""
STUCK_S = 30.0
"""Of any time: what sleeps or waits takes none of the processor's."""
MOST_BYTES = 500 << 20
MADE_SHARE = 0.5
"""Of inputs made by a grammar, where a target has one."""
CHUNK = 400
"""Inputs that one process tries before the next one begins."""


class OutOfTimeError(BaseException):
    """No Exception, so that nothing which handles errors takes it for one of its own."""


@dataclass(frozen=True)
class Finding:
    """What an input brought about; `where` tells findings of one kind from others."""

    target: str
    index: int
    kind: str
    where: str
    text: str
    files: dict[str, str]

    def save(self, folder: Path) -> Path:
        """Writes the input, to be tried again with --replay."""
        folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(self.where.encode()).hexdigest()[:8]
        path = folder / f"{self.target}-{name}.json"
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        return path


@dataclass
class Tally:
    """What became of a target's inputs. Times are seconds of the processor."""

    tried: int = 0
    taken: int = 0
    """Inputs that gave a result; the others were refused."""
    slowest_s: float = 0.0
    spent_s: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    repeated: int = 0
    """Findings of a kind that is known already."""

    def add(self, other: "Tally") -> None:
        self.tried += other.tried
        self.taken += other.taken
        self.spent_s += other.spent_s
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        for finding in other.findings:
            if finding.where in {known.where for known in self.findings}:
                self.repeated += 1
            else:
                self.findings.append(finding)


def made_input(target: Target, seed: int, index: int) -> dict[str, bytes]:
    """The input of that number."""
    draw = random.Random(f"{seed}:{target.name}:{index}")
    if target.made is not None and draw.random() < MADE_SHARE:
        made = target.made(draw)
        return dict(made) if draw.random() < 0.7 else mutated(made, target.seeds, draw)
    return mutated(draw.choice(target.seeds), target.seeds, draw)


def try_input(
    target: Target, index: int, files: Files, folder: Path
) -> tuple[Finding | None, bool]:
    """A finding if there is one, and whether the input gave a result."""
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    for name, data in {**(target.fixed or {}), **files}.items():
        (folder / name).write_bytes(data)

    def finding(kind: str, where: str, message: str) -> Finding:
        packed = {name: base64.b64encode(data).decode() for name, data in files.items()}
        return Finding(target.name, index, kind, f"{kind} {where}", message[:2000], packed)

    before = _peak_bytes()
    try:
        with _limited():
            result = target.read(folder)
        problem = insane(result, target.missing)
        if problem is None:
            problem = unrelated(result)
    except target.allowed as error:
        message = str(error)
        if len(message) > 4000:
            return finding("long message", _place(error), message), False
        return _memory(finding, before), False
    except OutOfTimeError as error:
        return finding("slow", _place(error), "".join(traceback.format_exception(error))), False
    except Exception as error:
        message = "".join(traceback.format_exception(error))
        return finding("exception", _place(error), message), False
    if problem is not None:
        where = re.sub(r"\d+", "N", problem.partition(" is ")[0])
        return finding("insane", where, problem), True
    return _memory(finding, before), True


def _memory(finding: Any, before: int) -> Finding | None:
    more = _peak_bytes() - before
    if more < MOST_BYTES:
        return None
    return finding("memory", "peak", f"{more >> 20} MiB more than before")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@contextmanager
def _limited() -> Iterator[None]:
    def out(signum: int, frame: FrameType | None) -> None:
        raise OutOfTimeError(f"more than {LONGEST_S} s")

    signal.signal(signal.SIGPROF, out)
    # The limit of a test uses the same timer.
    outer = signal.signal(signal.SIGALRM, out)
    left_s, _ = signal.setitimer(signal.ITIMER_REAL, STUCK_S)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGALRM, outer)
        signal.setitimer(signal.ITIMER_REAL, left_s)


def _place(error: BaseException) -> str:
    """The error's kind, and the innermost line of ours that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/eeio" in f.filename and "/tests/" not in f.filename]
    last = (ours or list(frames))[-1]
    return f"{type(error).__name__} {Path(last.filename).name}:{last.lineno}"


def _work(
    target: Target, seed: int, first: int, count: int, at: mmap.mmap, out: Connection
) -> None:
    """Tries inputs in this process; the tally goes into the pipe."""
    os.setsid()
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = 3 * MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    gc.freeze()
    tally = Tally()
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as name:
        for index in range(first, first + count):
            at[:8] = index.to_bytes(8, "little")
            files = made_input(target, seed, index)
            begun_s = time.process_time()
            found, taken = try_input(target, index, files, Path(name))
            took_s = time.process_time() - begun_s
            tally.tried += 1
            tally.taken += taken
            tally.spent_s += took_s
            tally.slowest_s = max(tally.slowest_s, took_s)
            if found is not None:
                tally.add(Tally(findings=[found]))
    out.send(tally)
    out.close()


@dataclass
class _Job:
    target: Target
    process: BaseProcess
    pipe: Connection
    at: mmap.mmap
    first: int
    count: int
    deadline_s: float


def fuzz(
    names: Sequence[str], seed: int, *, inputs: int, seconds: float, jobs: int = 1
) -> dict[str, Tally]:
    """Tries `inputs` of each target, and goes on until `seconds` are over (0: no longer).

    Targets take turns, so that one that is stopped has tried all of them.
    """
    targets = [all_targets()[name] for name in names]
    tallies = {target.name: Tally() for target in targets}
    begun = dict.fromkeys(tallies, 0)
    deadline_s = time.monotonic() + seconds
    context = multiprocessing.get_context("fork")
    running: list[_Job] = []
    turn = 0
    while True:
        while len(running) < jobs:
            target = _next(targets, begun, inputs, turn, time.monotonic() < deadline_s)
            if target is None:
                break
            turn += 1
            left = inputs - begun[target.name]
            count = min(CHUNK, left) if left > 0 else CHUNK
            if inputs == 0:
                count = min(CHUNK, 25)  # a short run looks at every target
            running.append(_started(context, target, seed, begun[target.name], count))
            begun[target.name] += count
        if not running:
            return tallies
        for job in _done(running):
            running.remove(job)
            tallies[job.target.name].add(_result(job, seed))


def _next(
    targets: Sequence[Target], begun: dict[str, int], inputs: int, turn: int, in_time: bool
) -> Target | None:
    behind = [target for target in targets if begun[target.name] < inputs]
    if behind:
        return min(behind, key=lambda target: begun[target.name])
    return targets[turn % len(targets)] if in_time else None


def _started(context: Any, target: Target, seed: int, first: int, count: int) -> _Job:
    at = mmap.mmap(-1, 8)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(target, seed, first, count, at, theirs))
    process.start()
    theirs.close()
    deadline_s = time.monotonic() + STUCK_S + count * (LONGEST_S + 1.0)
    return _Job(target, process, ours, at, first, count, deadline_s)


def _done(running: Sequence[_Job]) -> list[_Job]:
    ready = wait([job.pipe for job in running], timeout=1.0)
    now_s = time.monotonic()
    return [job for job in running if job.pipe in ready or now_s > job.deadline_s]


def _result(job: _Job, seed: int) -> Tally:
    """The tally of a process; one that died at an input has made a finding."""
    try:
        tally: Tally = job.pipe.recv() if job.pipe.poll() else _died(job, seed)
    except EOFError:
        tally = _died(job, seed)
    job.pipe.close()
    if job.process.is_alive():
        job.process.join(5.0)
        job.process.kill()
    job.process.join()
    return tally


def _died(job: _Job, seed: int) -> Tally:
    job.process.kill()
    job.process.join()
    index = int.from_bytes(job.at[:8], "little")
    files = made_input(job.target, seed, index)
    packed = {name: base64.b64encode(data).decode() for name, data in files.items()}
    code = job.process.exitcode
    text = f"the process ended with {code}"
    finding = Finding(job.target.name, index, "died", f"died {code}", text, packed)
    return Tally(tried=index - job.first + 1, findings=[finding])


def replay(path: Path) -> Finding | None:
    """Tries a saved input again, in this process."""
    body = json.loads(path.read_text(encoding="utf-8"))
    files = {name: base64.b64decode(data) for name, data in body["files"].items()}
    with tempfile.TemporaryDirectory() as folder:
        found, _ = try_input(all_targets()[body["target"]], body["index"], files, Path(folder))
    return found


def show(tallies: dict[str, Tally], out: Any = sys.stdout) -> None:
    """A line a target, and the sum."""
    print(f"{'target':20}{'inputs':>9}{'taken':>7}{'slowest':>9}{'findings':>10}", file=out)
    for name, tally in tallies.items():
        share = f"{tally.taken / tally.tried:.0%}" if tally.tried else "-"
        print(
            f"{name:20}{tally.tried:9}{share:>7}{tally.slowest_s:7.2f} s"
            f"{len(tally.findings) + tally.repeated:10}",
            file=out,
        )
    tried = sum(tally.tried for tally in tallies.values())
    found = sum(len(tally.findings) + tally.repeated for tally in tallies.values())
    slowest = max(tallies.items(), key=lambda item: item[1].slowest_s)
    least = min(tally.tried for tally in tallies.values())
    print(
        f"{tried} inputs over {len(tallies)} targets, at least {least} each; {found} findings; "
        f"slowest {slowest[1].slowest_s:.2f} s ({slowest[0]})",
        file=out,
    )
