"""`eeio import`: campaigns made of results that other people have."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from eeio.commands.arguments import OptionGroup, add_format
from eeio.commands.campaign_folders import campaign_folder
from eeio.commands.waiting import add_wait
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, EXIT_REJECTED, LimitError
from eeio.exchange.importing import imported, mapping, power_later, result_tables, results, runs
from eeio.pts import read as pts
from eeio.report import text
from eeio.units.external_text import shown
from eeio.units.number_text import number
from eeio.units.quantities import TIMESTAMP

_FILES, _PTS, _RUNS, _POWER = "files", "pts", "runs", "power"
# More remarks than this of one campaign are in its campaign.json, not on the screen.
_SHOWN = 8


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "import",
        help="import result files of other tools as campaigns",
        description="Imports results of other tools as campaigns. `eeio import FILE|FOLDER ...` "
        "is short for `eeio import files FILE|FOLDER ...`.",
    )
    sources = parser.add_subparsers(dest="source", metavar="SOURCE", required=True)
    files = sources.add_parser(
        _FILES,
        help="import result files, recognized by their content",
        description="Imports results of fio, IOR, mdtest, IO500, elbencho, IOzone, Bonnie++, "
        "lmbench, dd, sysbench, vdbench, hyperfine, NPB BT-IO, Darshan and PTS. A row is one "
        "direction of one group of one report; rows are never joined. Exit status 3 if some files "
        "were rejected, 2 if no file could be used.",
    )
    files.add_argument("paths", metavar="FILE|FOLDER", nargs="+", type=Path)
    files.add_argument(
        "--power", metavar="LOG", nargs="+", type=Path, default=[],
        help="power logs, recognized by content; LOG,lag_s=S,averages_s=S,offset_s=S: delay, "
        "clock; tables: csv:FILE,map=time:NAME+power_w:NAME",
    )  # fmt: skip
    _add_offset(files)
    files.add_argument("--name", metavar="NAME", help="campaign name (default: from the path)")
    files.add_argument("--dry-run", action="store_true", help="show the results, store none")
    add_format(files)
    files.set_defaults(action=import_files)
    power = sources.add_parser(
        _POWER,
        help="add the energy of power logs to a stored campaign",
        description="Adds energy from power logs that came after the campaign, by eeio or "
        "imported. An imported campaign needs its result files where they were. The earlier "
        "records stay in the folder of the campaign, in before-power-N.",
    )
    power.add_argument("name", metavar="NAME", help="stored campaign")
    power.add_argument("logs", metavar="LOG", nargs="+", type=Path, help="as of --power")
    _add_offset(power)
    power.add_argument(
        "--replace", action="store_true", help="replace the energy that the same meters have"
    )
    add_wait(OptionGroup(power))
    power.add_argument("--dry-run", action="store_true", help="show the results, store none")
    add_format(power)
    power.set_defaults(action=import_power)
    from_pts = sources.add_parser(
        _PTS,
        help="import a Phoronix Test Suite result file",
        description="Imports a composite.xml of the eeio module, or of plain PTS with pts/fio, "
        "pts/iozone or pts/tiobench: one campaign per system in the file.",
    )
    from_pts.add_argument("file", metavar="composite.xml", type=Path)
    from_pts.add_argument("--name", metavar="NAME", help="campaign name (default: from the file)")
    from_pts.add_argument("--preset", help="preset of the campaign (default: from the file)")
    from_pts.set_defaults(action=import_pts)
    from_runs = sources.add_parser(
        _RUNS,
        help="import a folder of results described by a map",
        description="Imports a folder of tables, logs and tools' outputs. See "
        "docs/how-to/import-results.md for the map.",
    )
    from_runs.add_argument("--map", metavar="MAP.yaml", type=Path, required=True)
    _add_folder(from_runs)
    for name, path in mapping.shipped().items():
        data_set = sources.add_parser(name, help="import this published data set (built-in map)")
        _add_folder(data_set)
        data_set.set_defaults(map=path)


def _add_offset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--power-offset",
        metavar="S",
        type=_offset,
        help="seconds that the logs' clock is ahead of the results' clock, for logs that need it; "
        "times without a zone count as UTC (default: by the load steps if the clocks may differ)",
    )


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the results")
    parser.add_argument("--name", metavar="NAME", help="campaign name prefix")
    parser.set_defaults(action=import_runs)


def with_source(argv: Sequence[str]) -> list[str]:
    """`import PATH` -> `import files PATH`; anything else as it is."""
    known = (_FILES, _PTS, _RUNS, _POWER, *mapping.shipped(), "-h", "--help")
    if len(argv) > 1 and argv[0] == "import" and argv[1] not in known:
        return ["import", _FILES, *argv[1:]]
    return list(argv)


def _offset(text: str) -> float:
    try:
        size_s = TIMESTAMP.of_text(text.lstrip("+-"))
        return -size_s if text.startswith("-") else size_s
    except LimitError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def import_files(arguments: argparse.Namespace) -> int:
    taken = results.take(
        arguments.paths, arguments.name, arguments.dry_run, arguments.power, arguments.power_offset
    )
    if arguments.format == "json":
        # File by file: there may be very many.
        power = json.dumps([used.to_json() for used in taken.logs], allow_nan=False)
        names = json.dumps(taken.names)
        print(f'{{"schema_version": 1, "campaigns": {names}, "power": {power}, "files": [')
        for place, one in enumerate(taken.files):
            print("," * (place > 0) + json.dumps(one.to_json(), allow_nan=False))
        print("]}")
    else:
        _print_tables(taken, arguments.dry_run)
    for added in taken.added:
        print(_of_added(added), file=sys.stderr if arguments.format == "json" else sys.stdout)
    for line in results.remarks(taken):
        print(f"eeio: {shown(line)}", file=sys.stderr)
    if all(one.rejected is not None for one in taken.files):
        return EXIT_REJECTED
    without_energy = bool(taken.logs) and not taken.has_energy
    return EXIT_DONE_WITH_INVALID_RUNS if taken.rejected or without_energy else EXIT_DONE


def _print_tables(taken: results.Taken, dry_run: bool) -> None:
    for table in (result_tables.table(taken), result_tables.energy_table(taken)):
        if table is not None:
            print(text.render_table(table, None))
    _tell(taken.stored)
    if dry_run:
        print("--dry-run: no result was stored")
    elif not taken.stored and taken.names:
        print(f"no run was added: the files are in {', '.join(taken.names)} already")


def import_power(arguments: argparse.Namespace) -> int:
    added = power_later.add(
        campaign_folder(arguments.name),
        arguments.logs,
        arguments.power_offset,
        arguments.replace,
        arguments.dry_run,
    )
    if arguments.format == "json":
        print(json.dumps(added.to_json(), indent=1, allow_nan=False))
    else:
        print(_of_added(added))
        for reason, phases in added.without.items():
            print(f"no energy in {phases} phases: {shown(reason)}")
        for used in added.logs:
            for line in results.on_log(used):
                print(f"{shown(str(used.log.path))}: {shown(line)}")
    if arguments.dry_run:
        print("--dry-run: no energy was stored", file=sys.stderr)
    return EXIT_DONE


def _of_added(added: power_later.Added) -> str:
    """The answer in one line."""
    idle = "" if added.idle_reason is None else f"; {added.idle_reason}"
    if added.idle_w is not None:
        idle = f", idle power {number(added.idle_w)} W"
    kept = "" if added.before is None else f"; the records before are in {added.before}"
    logs = ", ".join(str(used.log.path) for used in added.logs)
    return shown(f"{added.name}: {added.phases} phases have energy from {logs}{idle}{kept}")


def import_pts(arguments: argparse.Namespace) -> int:
    _tell(pts.import_file(arguments.file, arguments.name, arguments.preset))
    return EXIT_DONE


def import_runs(arguments: argparse.Namespace) -> int:
    found = runs.read(mapping.load(arguments.map), arguments.folder)
    for remark in found.remarks:
        print(remark)
    for campaign in found.campaigns:
        for remark in campaign.remarks[:_SHOWN]:
            print(f"{campaign.name}: {remark}")
        if len(campaign.remarks) > _SHOWN:
            more = len(campaign.remarks) - _SHOWN
            print(f"{campaign.name}: {more} more remarks, in its campaign.json")
    _tell(imported.store(found.campaigns, arguments.name or arguments.map.stem))
    return EXIT_DONE


def _tell(stored: Sequence[tuple[str, Path, int]]) -> None:
    for name, folder, count in stored:
        print(f"campaign {name}: {count} runs, in {folder}")
