"""What a tool wrote during a trial under another program's control, and when.

The tool's wrapper writes into a folder that is watched (Linux' inotify): each time `stdout.txt` or
`stderr.txt` has grown, their new size is stamped with the monotonic clock. This is what `eeio run`
notes when it reads a tool's pipes itself, in the same form (`capture.json`), so that one parser
serves both.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eeio_limits import inputs
from eeio_limits import quantities as q
from eeio_power.errors import PowerError
from eeio_power.folder_watch import FolderWatch

STREAMS = ("stdout", "stderr")
TELL_LIMIT_S = 30.0


class OutputFolder:
    """The folder that every trial's output goes to, and the one of its own it is kept in.

    `changed` is called with the monotonic time, s, whenever something in the folder changes.
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
        """Puts the trial's output into `NAME` beside the folder, with its capture.json."""
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


def told(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """What `command FOLDER` prints of a trial's output, an object in JSON.

    Raises PowerError with its last words if it fails.
    """
    try:
        done = subprocess.run(
            [*command, str(folder)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TELL_LIMIT_S,
            check=False,
        )  # fmt: skip
        body = inputs.parse_json(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise PowerError(f"{' '.join(command)}: {error}") from error
    if not isinstance(body, dict):
        words = done.stderr.strip().splitlines()
        raise PowerError(words[-1][:300] if words else f"exit code {done.returncode}")
    if "results" in body and len(body["results"]) != len(body.get("phases", ())):
        raise PowerError(f"{' '.join(command)}: not one result for each phase")
    return body


def efficiencies(
    phases: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """MB/J of each phase by each of its readings: its bytes over the energy of its window, for a
    write until they are on the device; bandwidth over mean power if the tool reports no bytes. Null
    with the `reason` if there is none.

    `results` are what the command told of the same phases: what PTS calls each (`words`), and why
    its bandwidth and its power do not belong together (`why_no_efficiency`).
    """
    return [
        {
            "words": result["words"],
            "meter": reading["meter"],
            "domain": reading["domain"],
            **_efficiency({**phase, **window}, result["why_no_efficiency"], reading),
        }
        for phase, result in zip(phases, results, strict=True)
        for window in (phase.get("until_durable") or phase,)
        for reading in window["energy"]
    ]


def _efficiency(
    phase: Mapping[str, Any], why_not: str | None, reading: Mapping[str, Any]
) -> dict[str, Any]:
    why_not = why_not or _why_unusable(reading)
    if why_not is not None:
        return {"mb_per_j": None, "reason": why_not}
    if phase["bytes_moved"]:
        return {"mb_per_j": phase["bytes_moved"] / 1e6 / reading["energy_j"], "reason": None}
    return {"mb_per_j": phase["bandwidth_bytes_per_s"] / 1e6 / reading["power_w"], "reason": None}


def _why_unusable(reading: Mapping[str, Any]) -> str | None:
    """As `eeio run` leaves such a reading out of MB/J."""
    if not reading["valid"] or reading["coverage"] < q.LEAST_COVERAGE:
        return "; ".join(reading["reasons"])
    if reading["power_w"] <= 0.0:
        return "its mean power is not above 0 W"
    limit_j = reading["uncertainty_j"]
    if reading["kind"] == "modelled" or limit_j is None:
        return None
    share = limit_j / reading["energy_j"]
    if share <= q.MOST_UNKNOWN:
        return None
    return f"the energy is known to ±{100 * share:.0f} % only: too short a window for this meter"
