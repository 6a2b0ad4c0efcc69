"""A process that samples power for another program, which talks to it in lines of JSON.

    python3 -m eeio_power.session --meter rapl --samples power.csv.gz

It opens the meters, samples them without a pause, and answers one line per request:

    {"do": "idle", "seconds": 5}                       energy of the next seconds, without work
    {"do": "begin"}                                    a tool is about to start: sample at once;
                                                       with "output" and "arguments": what it writes
                                                       into that folder is kept, and when
    {"do": "watch", "pid": 4711, "start_s": 812.25}    it began: note when it ends
    {"do": "end"}                                      energy from that start to that end; with
                                                       "keep" and "tell": the output goes into the
                                                       folder `keep`, and the command `tell` says
                                                       which phases are in it: `told` has the energy
                                                       of each
    {"do": "sync"}                                     write everything back, so that no trial pays
                                                       for the one before it
    {"do": "quit"}                                     no answer: the session ends

`start_s` is CLOCK_MONOTONIC in seconds, the clock of the caller too (PHP's hrtime). Each answer is
an object; `error` describes a failure in one line. The first line, before any request, lists the
open meters. The process also ends with its input, so a killed caller leaves no process behind.

The output of a tool during a trial under another program's control, with times.

The tool's wrapper writes into a watched folder (Linux' inotify). Each time `stdout.txt` or
`stderr.txt` grows, the new size is stored with the monotonic time. `eeio run` notes the same when
it reads a tool's pipes itself, in the same form (`capture.json`), so that one parser serves both.
"""

import argparse
import contextlib
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from eeio.files import inputs
from eeio.record.energy_reading import MARKS
from eeio.units import quantities as q
from eeio_power.energy import energy_in_parts
from eeio_power.errors import PowerError
from eeio_power.machine_lock import machine_lock
from eeio_power.monitor import FolderWatch, PowerMonitor, open_source
from eeio_power.reading import EnergyReading
from eeio_power.suspension import STOPPED, Stops, invalid

STREAMS = ("stdout", "stderr")
REPORT_LIMIT_S = 30.0
OF_COMMAND = ("labels", "experiment")
"""Keys of the command's answer that are not data of the trial."""


class OutputFolder:
    """The folder for every trial's output, and the separate folder that stores it.

    `changed` is called with the monotonic time, s, whenever the folder changes.
    """

    def __init__(self, folder: Path, changed: Callable[[float], None] = lambda _: None) -> None:
        self.folder = folder
        self._changed = changed
        self._stamps: list[tuple[str, int, float]] = []
        self._sizes = dict.fromkeys(STREAMS, 0)
        self._watch: FolderWatch | None = None

    def begin(self) -> None:
        """Empty the folder and watch it. Raises OSError if it cannot be made."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._stamps = []
        self._sizes = dict.fromkeys(STREAMS, 0)
        self._watch = FolderWatch(self.folder, self._look)

    def end(self) -> None:
        """Stop watching."""
        if self._watch is None:
            return
        now_s = time.monotonic()
        self._watch.stop()
        self._watch = None
        self._stamp(now_s)

    def keep(
        self, name: str, factors: Mapping[str, str], start_s: float, end_s: float, utc_s: float
    ) -> Path:
        """Moves the trial's output into `NAME` next to the folder, with its capture.json."""
        self.end()
        body = {
            "factors": dict(factors),
            "exit_code": 0,
            "started_monotonic_s": start_s,
            "ended_monotonic_s": end_s,
            "started_utc_s": utc_s,
            "stamps": [list(stamp) for stamp in self._stamps],
        }
        (self.folder / "capture.json").write_text(json.dumps(body) + "\n", encoding="utf-8")
        kept = self.folder.with_name(name)
        shutil.rmtree(kept, ignore_errors=True)
        self.folder.rename(kept)
        return kept

    def _look(self, now_s: float) -> None:
        self._changed(now_s)
        self._stamp(now_s)

    def _stamp(self, now_s: float) -> None:
        for stream in STREAMS:
            with suppress(OSError):
                size = (self.folder / f"{stream}.txt").stat().st_size
                if size > self._sizes[stream]:
                    self._sizes[stream] = size
                    self._stamps.append((stream, size, now_s))


def reported(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """The output of `command FOLDER` for a trial's output, a JSON object.

    Raises PowerError with its last message if it fails.
    """
    try:
        done = subprocess.run(
            [*command, str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=REPORT_LIMIT_S,
            check=False,
        )
        body = None
        if done.returncode == 0:
            body = inputs.parse_json(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise PowerError(f"{' '.join(command)}: {error}") from error
    if not isinstance(body, dict):
        lines = done.stderr.strip().splitlines()
        reason = f"exit code {done.returncode}"
        if lines:
            reason = lines[-1][:300]
        raise PowerError(reason)
    if "labels" in body and len(body["labels"]) != len(body.get("phases", ())):
        raise PowerError(f"{' '.join(command)}: not one label for each phase")
    return body


EXIT_REJECTED = 2

# Old kernels have no pidfd: there /proc is read this often. Finer would take power itself.
POLL_PERIOD_S = 0.005

# A tool without an observed end (its watcher cannot hang, but its caller may be wrong about it).
END_LIMIT_S = 60.0

Answer = dict[str, Any]

# A forked child of the caller keeps our input open: closing it does not always end us.
QUIT = {"do": "quit"}


def process_state(pid: int) -> str | None:
    """The state letter in /proc/PID/stat; None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command's name is in brackets and may contain brackets and blanks itself.
    return text.rpartition(")")[2].split()[0]


def wait_for_end(pid: int) -> float:
    """Waits until the process has ended, reaped or not; monotonic seconds of that moment."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll()
            return time.monotonic()
        finally:
            os.close(descriptor)
    while process_state(pid) not in (None, "Z", "X"):
        time.sleep(POLL_PERIOD_S)
    return time.monotonic()


class Trial:
    """One invocation of a tool, from its start to the end of its process."""

    def __init__(self, pid: int, start_s: float, sample_now: Callable[[], None]) -> None:
        self.start_s = start_s
        self._sample_now = sample_now
        self.started_utc = datetime.fromtimestamp(
            time.time() - (time.monotonic() - start_s), UTC
        ).isoformat(timespec="milliseconds")
        self._pid = pid
        self._end_s: float | None = None
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def end_s(self) -> float:
        """Monotonic seconds of the end; raises PowerError if it does not come."""
        self._watcher.join(END_LIMIT_S)
        if self._end_s is None:
            raise PowerError(f"process {self._pid} has not ended: no window to take energy from")
        return self._end_s

    def _watch(self) -> None:
        self._end_s = wait_for_end(self._pid)
        self._sample_now()


class Session:
    """The power of the machine, the running trial, and the observations of earlier trials."""

    def __init__(self, power: PowerMonitor, stops: Stops) -> None:
        self._power = power
        self._stops = stops
        self._stops_before = 0
        self._trial: Trial | None = None
        self._output: OutputFolder | None = None
        self._factors: dict[str, str] = {}

    def greeting(self) -> Answer:
        """Which meters there are."""
        return {
            "meters": [
                {
                    "name": meter.name,
                    "spec": meter.spec,
                    "kind": meter.kind,
                    "words": f"{meter.name} ({_kind_label(meter.kind)})",
                    "domains": sorted({c.domain for c in meter.channels if c.in_domain_total}),
                    "period_s": meter.native_period_s,
                }
                for meter in self._power.meters
            ]
        }

    def answer(self, request: Answer) -> Answer:
        """Serves one request; raises PowerError, KeyError, TypeError or ValueError."""
        match request["do"]:
            case "idle":
                seconds = q.PAUSE.checked(request["seconds"], "seconds")
                self._stops_before = self._stops.count
                start_s = time.monotonic()
                time.sleep(seconds)
                return self._window(start_s, start_s + seconds)
            case "begin":
                # The caller's tool must not wait for a slow meter.
                threading.Thread(target=self._power.mark, daemon=True).start()
                self._power.hasten()
                self._watch_output(request)
                return {}
            case "watch":
                self._stops_before = self._stops.count
                self._trial = Trial(
                    q.COUNT.whole_number(request["pid"], "pid"),
                    q.TIMESTAMP.checked(request["start_s"], "start_s"),
                    self._power.mark,
                )
                return {}
            case "end":
                return self._end(request)
            case "sync":
                start_s = time.monotonic()
                os.sync()
                return {"sync_s": time.monotonic() - start_s}
        raise ValueError(f"{request['do']!r} is not one of idle, begin, watch, end, sync")

    def _watch_output(self, request: Answer) -> None:
        self._output, self._factors = None, {}
        if "output" in request:
            arguments = (argument.partition("=") for argument in shlex.split(request["arguments"]))
            self._factors = {key: value for key, separator, value in arguments if separator}
            output = OutputFolder(Path(request["output"]), self._power.edge)
            output.begin()
            self._output = output

    def _end(self, request: Answer) -> Answer:
        trial, self._trial = self._trial, None
        output, self._output = self._output, None
        if trial is None:
            raise PowerError("no trial was watched")
        try:
            end_s = trial.end_s()
        finally:
            self._power.relax()
        answer = {"started_utc": trial.started_utc, **self._window(trial.start_s, end_s)}
        if output is not None and "keep" in request:
            utc_s = time.time() - (time.monotonic() - trial.start_s)
            kept = output.keep(str(request["keep"]), self._factors, trial.start_s, end_s, utc_s)
            try:
                body = reported(list(map(str, request["tell"])), kept)
                for key in OF_COMMAND:
                    if key in body:
                        answer[key] = body.pop(key)
                answer["told"] = self._with_energy(body, trial.start_s)
            except PowerError as error:
                answer["not_told"] = str(error)
        return answer

    def _with_energy(self, body: Answer, start_s: float) -> Answer:
        """Every phase that has a window gets the energy of that window, or of its stretches; a
        write that of the time until its bytes were on the device too. The uncertainty contains
        the time that the edges of the window may be off (`edges_unsure_s`)."""
        for phase in body.get("phases", []):
            begin_s, end_s = phase.get("start_s"), phase.get("end_s")
            parts = [
                (stretch["start_s"], stretch["end_s"]) for stretch in phase.get("stretches") or ()
            ]
            phase["energy"] = self._energy(start_s, begin_s, end_s, parts)
            energies = [phase["energy"]]
            if durable := phase.get("until_durable"):
                durable["energy"] = self._energy(start_s, begin_s, durable["end_s"])
                energies.append(durable["energy"])
            unsure_s = phase.pop("edges_unsure_s", None) or 0.0
            for reading in (reading for energy in energies for reading in energy):
                if reading["uncertainty_j"] is not None:
                    reading["uncertainty_j"] += abs(reading["power_w"]) * unsure_s
        return body

    def _energy(
        self,
        start_s: float,
        begin_s: float | None,
        end_s: float | None,
        parts: Sequence[tuple[float, float]] = (),
    ) -> list[Answer]:
        if begin_s is None or end_s is None:
            return []
        if parts:
            windows = [(start_s + first_s, start_s + last_s) for first_s, last_s in parts]
            readings: Sequence[EnergyReading] = energy_in_parts(self._power.energy, windows)
        else:
            readings = self._power.energy(start_s + begin_s, start_s + end_s)
        return [reading.to_json() for reading in readings]

    def _window(self, start_s: float, end_s: float) -> Answer:
        readings: Sequence[EnergyReading] = self._power.energy(start_s, end_s)
        if self._stops.count > self._stops_before:
            readings = invalid(readings, STOPPED)
        return {
            "start_s": round(start_s, 6),
            "duration_s": round(end_s - start_s, 6),
            "readings": [reading.to_json() for reading in readings],
        }


def _kind_label(kind: str) -> str:
    if kind in MARKS:
        return f"{MARKS[kind]}, not a measurement"
    return kind


def serve(session: Session, requests: Iterable[str], answers: TextIO) -> None:
    """One answer per request, until the requests end or one is `quit`."""
    for line in requests:
        try:
            request = inputs.parse_json(line, inputs.ANSWER_BYTES)
            if request == QUIT:
                return
            answer = session.answer(request)
        except (PowerError, OSError) as error:
            answer = {"error": str(error)}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            answer = {"error": f"not a request: {line.strip()[:100]} ({error})"}
        send(answer, answers)


def send(answer: Answer, answers: TextIO) -> None:
    answers.write(json.dumps(answer, separators=(",", ":")) + "\n")
    answers.flush()


def main(argv: Sequence[str] | None = None, kind: type[Session] = Session) -> int:
    """Serves stdin until it ends."""
    parser = argparse.ArgumentParser(prog="python3 -m eeio_power.session", description=__doc__)
    parser.add_argument("--meter", action="append", default=[], metavar="SPEC")
    parser.add_argument("--samples", type=Path, required=True, help="gzip file for all samples")
    parser.add_argument("--allow-estimates", action="store_true")
    arguments = parser.parse_args(argv)
    # Ctrl-C is for the caller, who ends this process by closing its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.ExitStack() as stack:
        try:
            source = open_source(arguments.meter, arguments.allow_estimates)
            if source.meters:
                stack.enter_context(machine_lock())
            power = PowerMonitor(source, arguments.samples)
            power.start()
        except (PowerError, OSError) as error:
            send({"error": str(error)}, sys.stdout)
            return EXIT_REJECTED
        with Stops() as stops, contextlib.suppress(BrokenPipeError):
            session = kind(power, stops)
            send(session.greeting(), sys.stdout)
            serve(session, sys.stdin, sys.stdout)
        power.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
