"""`eeio list`: suites, profiles and stored campaigns."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio import paths
from eeio.commands.output_file import format_option
from eeio.errors import EXIT_DONE, EeioError
from eeio.measure import environment
from eeio.measure.campaign import pilot_store
from eeio.measure.campaign.pilot_store import StoredPilot
from eeio.measure.profiles import installation
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles import suite as suites
from eeio.options import Command, switch
from eeio.record.run import Tool
from eeio.record.store import progress
from eeio.units.external_text import shown

SCHEMA_VERSION = 1

Item = Mapping[str, Any]
"""`name`, `folder`, and further fields of a suite, profile or campaign; or the `reason` why it
cannot be read."""


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """`eeio list`."""

    format: str = format_option()
    pilots: bool = switch(
        "--pilots",
        help="list stored pilots: run times and work sizes",
    )


def show(request: ListRequest) -> int:
    if request.pilots:
        return _show_pilots(request.format == "json")
    items = {
        "suites": _all(suites.available(), _suite),
        "profiles": _all(profiles.available(), _profile),
        "campaigns": _all(paths.campaigns(), _campaign),
    }
    if request.format == "json":
        print(json.dumps({"schema_version": SCHEMA_VERSION, **items}, indent=1))
        return EXIT_DONE
    _print("suites", items["suites"], _suite_text)
    _print("test profiles", items["profiles"], _profile_text)
    _print(f"campaigns in {paths.results_root()}", items["campaigns"], _campaign_text)
    return EXIT_DONE


def _show_pilots(as_json: bool) -> int:
    """Those that are kept. Whether one holds is told by machine and tools; that the drive is the
    same only a campaign knows, which has one."""
    damaged = pilot_store.unreadable()
    pilots = [(pilot, _why_not_here(pilot)) for pilot in pilot_store.stored()]
    if as_json:
        bodies = [
            {**pilot.to_json(), "holds_here": not reason, "reason": "; ".join(reason) or None}
            for pilot, reason in pilots
        ]
        body = {"schema_version": SCHEMA_VERSION, "pilots": bodies, "unreadable": damaged}
        print(json.dumps(body, indent=1))
        return EXIT_DONE
    print(f"pilots in {pilot_store.folder()}:")
    for pilot, reason in pilots:
        task = pilot.asked
        drives = ", ".join(f"{name} {drive}" for name, drive in sorted(pilot.disks.items()))
        validity = "valid on that drive"
        if reason:
            validity = f"not valid here: {'; '.join(reason)}"
        print(
            shown(
                f"  {task.experiment.id}  {task.profile}  {task.factor} {task.before} -> "
                f"{pilot.found}  {pilot.machine.hostname}, {drives or 'no drive'}, "
                f"{pilot.made_utc[:10]}: {pilot.words}; {validity}"
            )
        )
    for line in damaged:
        print(f"  {shown(line)}")
    return EXIT_DONE


def _why_not_here(pilot: StoredPilot) -> list[str]:
    tools: list[Tool] = []
    with suppress(EeioError):
        installed = installation.find(profiles.find(pilot.asked.profile))
        if installed and installed.tool:
            tools = [installed.tool]
    return environment.differences(pilot.machine, environment.capture(None, None, tools), False)


def _all(folders: Mapping[str, Path], read: Callable[[Path], Item]) -> list[Item]:
    return [
        {"name": name, "folder": str(folder), **_read(read, folder)}
        for name, folder in folders.items()
    ]


def _read(read: Callable[[Path], Item], folder: Path) -> Item:
    """One that is damaged hides none of the others."""
    try:
        return {**read(folder), "reason": None}
    except (EeioError, OSError, ValueError) as error:
        return {"reason": str(error)}


def _print(title: str, items: list[Item], text_of: Callable[[Item], str]) -> None:
    print(f"{title}:")
    for item in items:
        text = f"unreadable: {item['reason']}"
        if item["reason"] is None:
            text = text_of(item)
        print(f"  {item['name']}: {text}")


def _suite(folder: Path) -> Item:
    suite = suites.load(folder)
    return {
        "title": suite.title,
        "experiments": len(suite.entries),
        "presets": list(suite.presets),
    }


def _suite_text(item: Item) -> str:
    return f"{item['title']} ({item['experiments']} experiments; {', '.join(item['presets'])})"


def _profile(folder: Path) -> Item:
    profile = profiles.load(folder)
    return {"title": profile.title, "installed": installation.find(profile) is not None}


def _profile_text(item: Item) -> str:
    state = "not installed yet"
    if item["installed"]:
        state = "installed"
    return f"{item['title']} ({state})"


def _campaign(folder: Path) -> Item:
    extent = progress(folder)
    return {
        "suite": extent.suite,
        "stored_runs": extent.stored_runs,
        "planned_runs": extent.planned_runs,
    }


def _campaign_text(item: Item) -> str:
    return f"{item['suite']}, {item['stored_runs']} of {item['planned_runs']} runs"


COMMAND = Command(
    "list",
    ListRequest,
    show,
    help="list suites, profiles and campaigns",
    description="Lists suites, test profiles and stored campaigns.",
)
