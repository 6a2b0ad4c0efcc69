"""`eeio import`: campaigns made of results that other people have."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from eeio.commands.campaign_folders import campaign_folder
from eeio.commands.output_file import format_option
from eeio.commands.waiting import wait_option
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, EXIT_REJECTED
from eeio.exchange.importing import imported, mapping, power_later, result_tables, results, runs
from eeio.options import Command, Family, argument, option, switch
from eeio.pts import read as pts
from eeio.report import text
from eeio.units.external_text import shown
from eeio.units.number_text import number
from eeio.units.quantities import REPETITIONS, TIMESTAMP

_FILES, _PTS, _RUNS, _POWER = "files", "pts", "runs", "power"
# More remarks than this of one campaign are in its campaign.json, not on the screen.
_SHOWN = 8


def _offset(text: str) -> float:
    size_s = TIMESTAMP.of_text(text.lstrip("+-"))
    if text.startswith("-"):
        return -size_s
    return size_s


def _drives(text: str) -> int:
    return int(REPETITIONS.of_text(text, "drives"))


def _power_offset() -> Any:
    return option(
        "--power-offset",
        value="S",
        parse=_offset,
        help="seconds that the logs' clock is ahead of the results' clock, for logs that need it; "
        "times without a zone count as UTC (default: by the load steps if the clocks may differ)",
    )


@dataclass(frozen=True, kw_only=True)
class FilesRequest:
    """`eeio import files`."""

    paths: tuple[Path, ...] = argument("FILE|FOLDER", count="+", parse=Path)
    power: tuple[Path, ...] = option(
        "--power",
        value="LOG",
        count="+",
        parse=Path,
        help="power logs, recognized by content; LOG,lag_s=S,averages_s=S,offset_s=S: delay, "
        "clock; tables: csv:FILE,map=time:NAME+power_w:NAME",
    )
    power_offset: float | None = _power_offset()
    drives: int | None = option(
        "--drives",
        value="N",
        parse=_drives,
        help="drives behind each result, for the column MB/J per drive",
    )
    name: str | None = option("--name", value="NAME", help="campaign name (default: from the path)")
    dry_run: bool = switch("--dry-run", help="show the results, store none")
    format: str = format_option()


@dataclass(frozen=True, kw_only=True)
class PowerRequest:
    """`eeio import power`."""

    name: str = argument("NAME", help="stored campaign")
    logs: tuple[Path, ...] = argument("LOG", count="+", parse=Path, help="as of --power")
    power_offset: float | None = _power_offset()
    replace: bool = switch("--replace", help="replace the energy that the same meters have")
    wait: float | None = wait_option()
    dry_run: bool = switch("--dry-run", help="show the results, store none")
    format: str = format_option()


@dataclass(frozen=True, kw_only=True)
class PtsRequest:
    """`eeio import pts`."""

    file: Path = argument("composite.xml", parse=Path)
    name: str | None = option("--name", value="NAME", help="campaign name (default: from the file)")
    preset: str | None = option("--preset", help="preset of the campaign (default: from the file)")


@dataclass(frozen=True, kw_only=True)
class DataSetRequest:
    """`eeio import ccpe2017`, and the other data sets that eeio has a map of."""

    folder: Path = argument("DIR", parse=Path, help="folder of the results")
    name: str | None = option("--name", value="NAME", help="campaign name prefix")


@dataclass(frozen=True, kw_only=True)
class RunsRequest:
    """`eeio import runs`."""

    map: Path = option("--map", value="MAP.yaml", parse=Path, required=True)
    folder: Path = argument("DIR", parse=Path, help="folder of the results")
    name: str | None = option("--name", value="NAME", help="campaign name prefix")


def with_source(argv: Sequence[str]) -> list[str]:
    """`import PATH` -> `import files PATH`; anything else as it is."""
    known = (_FILES, _PTS, _RUNS, _POWER, *mapping.shipped(), "-h", "--help")
    if len(argv) > 1 and argv[0] == "import" and argv[1] not in known:
        return ["import", _FILES, *argv[1:]]
    return list(argv)


def import_files(request: FilesRequest) -> int:
    taken = results.take(
        request.paths,
        request.name,
        request.dry_run,
        request.power,
        request.power_offset,
        request.drives,
    )
    if request.format == "json":
        # File by file: there may be very many.
        power = json.dumps([used.to_json() for used in taken.logs], allow_nan=False)
        names = json.dumps(taken.names)
        print(f'{{"schema_version": 1, "campaigns": {names}, "power": {power}, "files": [')
        for place, one in enumerate(taken.files):
            print("," * (place > 0) + json.dumps(one.to_json(), allow_nan=False))
        print("]}")
    else:
        _print_tables(taken, request.dry_run)
    for added in taken.added:
        stream = sys.stdout
        if request.format == "json":
            stream = sys.stderr
        print(_of_added(added), file=stream)
    for line in results.remarks(taken):
        print(f"eeio: {shown(line)}", file=sys.stderr)
    if all(one.rejected is not None for one in taken.files):
        return EXIT_REJECTED
    without_energy = bool(taken.logs) and not taken.has_energy
    if taken.rejected or without_energy:
        return EXIT_DONE_WITH_INVALID_RUNS
    return EXIT_DONE


def _print_tables(taken: results.Taken, dry_run: bool) -> None:
    for table in (result_tables.table(taken), result_tables.energy_table(taken)):
        if table is not None:
            print(text.render_table(table, None))
    _tell(taken.stored)
    if dry_run:
        print("--dry-run: no result was stored")
    elif not taken.stored and taken.names:
        print(f"no run was added: the files are in {', '.join(taken.names)} already")


def import_power(request: PowerRequest) -> int:
    added = power_later.add(
        campaign_folder(request.name),
        request.logs,
        request.power_offset,
        request.replace,
        request.dry_run,
    )
    if request.format == "json":
        print(json.dumps(added.to_json(), indent=1, allow_nan=False))
    else:
        print(_of_added(added))
        for reason, phases in added.without.items():
            print(f"no energy in {phases} phases: {shown(reason)}")
        for used in added.logs:
            for line in results.on_log(used):
                print(f"{shown(str(used.log.path))}: {shown(line)}")
    if request.dry_run:
        print("--dry-run: no energy was stored", file=sys.stderr)
    return EXIT_DONE


def _of_added(added: power_later.Added) -> str:
    """The answer in one line."""
    idle = ""
    if added.idle_reason is not None:
        idle = f"; {added.idle_reason}"
    if added.idle_w is not None:
        idle = f", idle power {number(added.idle_w)} W"
    kept = ""
    if added.before is not None:
        kept = f"; the records before are in {added.before}"
    logs = ", ".join(str(used.log.path) for used in added.logs)
    return shown(f"{added.name}: {added.phases} phases have energy from {logs}{idle}{kept}")


def import_pts(request: PtsRequest) -> int:
    _tell(pts.import_file(request.file, request.name, request.preset))
    return EXIT_DONE


def import_runs(request: RunsRequest) -> int:
    return _import_runs(request.map, request.folder, request.name)


def _import_data_set(map_file: Path, request: DataSetRequest) -> int:
    return _import_runs(map_file, request.folder, request.name)


def _import_runs(map_file: Path, folder: Path, name: str | None) -> int:
    found = runs.read(mapping.load(map_file), folder)
    for remark in found.remarks:
        print(remark)
    for campaign in found.campaigns:
        for remark in campaign.remarks[:_SHOWN]:
            print(f"{campaign.name}: {remark}")
        if len(campaign.remarks) > _SHOWN:
            more = len(campaign.remarks) - _SHOWN
            print(f"{campaign.name}: {more} more remarks, in its campaign.json")
    _tell(imported.store(found.campaigns, name or map_file.stem))
    return EXIT_DONE


def _tell(stored: Sequence[tuple[str, Path, int]]) -> None:
    for name, folder, count in stored:
        print(f"campaign {name}: {count} runs, in {folder}")


COMMAND = Family(
    "import",
    kind="SOURCE",
    help="import result files of other tools as campaigns",
    description="Imports results of other tools as campaigns. `eeio import FILE|FOLDER ...` "
    "is short for `eeio import files FILE|FOLDER ...`.",
    commands=(
        Command(
            _FILES,
            FilesRequest,
            import_files,
            help="import result files, recognized by their content",
            description="Imports results of fio, IOR, mdtest, IO500, elbencho, IOzone, Bonnie++, "
            "lmbench, dd, sysbench, vdbench, hyperfine, MLPerf Storage, NPB BT-IO, Darshan and "
            "PTS. A row is one direction of one group of one report; rows are never joined. Exit "
            "status 3 if some files were rejected, 2 if no file could be used.",
        ),
        Command(
            _POWER,
            PowerRequest,
            import_power,
            help="add the energy of power logs to a stored campaign",
            description="Adds energy from power logs that came after the campaign, by eeio or "
            "imported. An imported campaign needs its result files where they were. The earlier "
            "records stay in the folder of the campaign, in before-power-N.",
        ),
        Command(
            _PTS,
            PtsRequest,
            import_pts,
            help="import a Phoronix Test Suite result file",
            description="Imports a composite.xml of the eeio module, or of plain PTS with pts/fio, "
            "pts/iozone or pts/tiobench: one campaign per system in the file.",
        ),
        Command(
            _RUNS,
            RunsRequest,
            import_runs,
            help="import a folder of results described by a map",
            description="Imports a folder of tables, logs and tools' outputs. See "
            "docs/how-to/import-results.md for the map.",
        ),
        *(
            Command(
                name,
                DataSetRequest,
                partial(_import_data_set, path),
                help="import this published data set (built-in map)",
            )
            for name, path in mapping.shipped().items()
        ),
    ),
)
