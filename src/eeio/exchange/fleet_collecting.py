"""The campaigns of a fleet's nodes, found in folders and in result files of PTS."""

import gc
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from eeio.comparison.fleet import NodeResults
from eeio.errors import EeioError, RejectedError
from eeio.measure.fleet_jobs import LOGS, NODES, Submission, read_submission
from eeio.paths import temporary_folder
from eeio.pts import read as pts
from eeio.record.run import Machine
from eeio.record.store import Campaign, load
from eeio.units.external_text import shown

_CAMPAIGN = "campaign.json"
_PTS = "composite.xml"
_CLOCK_S = 60.0
"""Smaller differences of clocks do not change a result."""
_LOG_BYTES = 4096


@dataclass(frozen=True)
class Collected:
    """The nodes in the order of their names, what could not be read, and remarks on what was not
    used."""

    nodes: tuple[NodeResults, ...]
    rejected: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Found:
    """A campaign and the place that it was found in; `node` is the node's name if the place says
    so, else its host name."""

    node: str
    place: Path
    campaign: Campaign
    submitted: Submission | None = None

    @property
    def suite(self) -> str:
        """A suite of the user's is stored by its folder."""
        return Path(self.campaign.design.suite).name


def collect(paths: Sequence[Path]) -> Collected:
    """The nodes below these folders and in these files. Raises RejectedError for a path that does
    not exist, and if nothing was found."""
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise RejectedError(f"{missing[0]}: no such file or folder")
    campaigns: list[_Found] = []
    rejected: list[str] = []
    fleets: dict[Path, Submission] = {}
    # No record refers back to another: a search for reference cycles finds nothing.
    gc.disable()
    try:
        for path in paths:
            for place in _places(path, rejected):
                try:
                    campaigns += _read(place, fleets)
                except (EeioError, OSError, ValueError) as error:
                    message = str(error)
                    rejected.append(message if str(place) in message else f"{place}: {message}")
    finally:
        gc.enable()
    if not campaigns and not fleets:
        reason = ""
        if rejected:
            reason = f" ({shown(rejected[0])})"
        raise RejectedError(
            f"{', '.join(map(str, paths))}: no campaign and no {_PTS} found{reason}"
        )
    campaigns, remarks = _of_one_suite(campaigns)
    nodes, repeated, namesakes = _nodes(campaigns)
    reported = {node.name for node in nodes}
    for folder, submitted in fleets.items():
        nodes += [
            NodeResults(name, None, (_why_none(folder, name),))
            for name in submitted.nodes
            if name not in reported
        ]
    ordered = sorted(nodes, key=lambda node: _natural(node.name))
    return Collected(tuple(ordered), (*rejected, *namesakes), (*remarks, *repeated))


def _of_one_suite(found: list[_Found]) -> tuple[list[_Found], list[str]]:
    """The campaigns of the suite that most nodes have, and remarks on the others."""
    nodes: dict[str, set[str]] = {}
    for candidate in found:
        nodes.setdefault(candidate.suite, set()).add(candidate.node)
    suite = max(nodes, key=lambda name: len(nodes[name]), default="")
    return [candidate for candidate in found if candidate.suite == suite], [
        f"{candidate.place}: not used; its suite is {candidate.suite}, not {suite}"
        for candidate in found
        if candidate.suite != suite
    ]


def _natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """node2 before node10."""
    digits = "".join(c if c.isdigit() else f" {c} " for c in name).split()
    return tuple((c.isdigit(), int(c) if c.isdigit() else 0, c) for c in digits)


def _places(path: Path, unread: list[str]) -> Iterator[Path]:
    """Files of PTS and folders of campaigns. Links are not followed: a loop has no end. Folders
    that cannot be read join `unread`."""
    if path.is_file():
        yield path
        return
    for folder, folders, files in os.walk(
        path, onerror=lambda error: unread.append(f"{error.filename}: {error.strerror}")
    ):
        here = Path(folder)
        if _CAMPAIGN in files:
            yield here
            folders.clear()
        elif "fleet.json" in files:
            yield here / "fleet.json"
        if _PTS in files:
            yield here / _PTS
        # A campaign that a killed process left is named .NAME.new.
        folders[:] = sorted(name for name in folders if not name.startswith("."))


def _read(place: Path, fleets: dict[Path, Submission]) -> list[_Found]:
    if place.name == "fleet.json":
        fleets[place.parent.resolve()] = read_submission(place.parent)
        return []
    if place.is_file():
        return _of_pts(place)
    campaign = load(place)
    folder, node = _fleet_of(place.resolve(), fleets)
    return [_Found(node or campaign.machine.hostname, place, campaign, fleets.get(folder))]


def _fleet_of(place: Path, fleets: dict[Path, Submission]) -> tuple[Path, str | None]:
    """The fleet's folder that a campaign lies in, and the node: FLEET/nodes/NODE/..."""
    for parent in place.parents:
        if parent.parent.name == NODES and parent.parent.parent in fleets:
            return parent.parent.parent, parent.name
    return place, None


def _of_pts(path: Path) -> list[_Found]:
    """One node a system: Phoromatic writes the results of all its systems into one file."""
    with tempfile.TemporaryDirectory(prefix="eeio-fleet-", dir=temporary_folder()) as folder:
        stored = pts.import_file(path, None, None, Path(folder))
        campaigns = [load(place) for _, place, _ in stored]
    return [_Found(campaign.machine.hostname, path, campaign) for campaign in campaigns]


def _nodes(found: Sequence[_Found]) -> tuple[list[NodeResults], list[str], list[str]]:
    """One result a node: of a node that reports twice the newest complete campaign. The second
    list says what else there was, and the third one names machines that share a name."""
    by_name: dict[str, list[_Found]] = {}
    for candidate in found:
        by_name.setdefault(candidate.node, []).append(candidate)
    nodes: list[NodeResults] = []
    remarks: list[str] = []
    namesakes: list[str] = []
    for name, of_name in by_name.items():
        machines: list[list[_Found]] = []
        for candidate in of_name:
            same = [m for m in machines if _same(m[0].campaign.machine, candidate.campaign.machine)]
            if not same:
                machines.append([])
            (same or machines[-1:])[0].append(candidate)
        for number, of_machine in enumerate(machines, start=1):
            shown_name = name if len(machines) == 1 else f"{name} ({number})"
            if len(machines) > 1:
                namesakes.append(
                    f"{of_machine[0].place}: another machine of the name {name}; shown as "
                    f"{shown_name}"
                )
            nodes.append(_newest(shown_name, of_machine, remarks))
    return nodes, remarks, namesakes


def _same(one: Machine, other: Machine) -> bool:
    """Whether two descriptions can be of one machine. Its kernel, drive and tools may change."""
    names = ("architecture", "cpu_model", "logical_cpus", "memory_bytes")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    return one.drive_id == other.drive_id or None in (one.drive_id, other.drive_id)


def _newest(name: str, found: list[_Found], remarks: list[str]) -> NodeResults:
    def rank(candidate: _Found) -> tuple[bool, str]:
        return candidate.campaign.is_complete, candidate.campaign.design.created_utc

    chosen = max(found, key=rank)
    for candidate in found:
        if candidate is chosen:
            continue
        same = candidate.campaign.design == chosen.campaign.design
        copy = same and candidate.campaign.stored_runs <= chosen.campaign.stored_runs
        reason = "not used; the newest complete campaign of the node is"
        if copy:
            reason = "a copy of"
        remarks.append(f"{candidate.place}: {reason} {chosen.place}")
    return NodeResults(name, chosen.campaign, tuple(_clock(chosen)))


def _clock(one: _Found) -> Iterator[str]:
    """A wrong clock changes no duration, but it misleads whoever orders results by time."""
    try:
        begun = datetime.fromisoformat(one.campaign.design.created_utc)
    except ValueError:
        return
    if begun.tzinfo is None:
        begun = begun.replace(tzinfo=UTC)
    ahead_s = (begun - datetime.now(UTC)).total_seconds()
    if ahead_s > _CLOCK_S:
        yield f"its clock is wrong: the campaign began {_apart(ahead_s)} after now"
    if one.submitted is not None:
        behind_s = (datetime.fromisoformat(one.submitted.submitted_utc) - begun).total_seconds()
        if behind_s > _CLOCK_S:
            yield f"its clock is wrong: the campaign began {_apart(behind_s)} before its job"


def _apart(duration_s: float) -> str:
    for name, unit_s in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if duration_s >= 2 * unit_s:
            return f"{duration_s / unit_s:.0f} {name}"
    return f"{duration_s:.0f} s"


def _why_none(folder: Path, name: str) -> str:
    """The last line of the node's log, if there is one."""
    log = folder / LOGS / f"{name}.log"
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return "its job has not started, or its log is missing"
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if last:
        return f"log {log.name}: {shown(last)}"
    return f"log {log.name} is empty"
