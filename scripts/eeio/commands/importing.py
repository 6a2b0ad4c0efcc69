"""`eeio import`: campaigns made of results that others have: PTS files, folders with a map."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eeio.errors import EXIT_DONE
from eeio.importing import imported, mapping, runs
from eeio.pts import read as pts

_PTS, _RUNS = "pts", "runs"
# More remarks than this of one campaign are in its campaign.json, not on the screen.
_SHOWN = 8


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "import",
        help="import PTS results or a folder of results as campaigns",
        description="Imports results of other tools as campaigns. `eeio import composite.xml` "
        "is short for `eeio import pts composite.xml`.",
    )
    sources = parser.add_subparsers(dest="source", metavar="SOURCE", required=True)
    from_pts = sources.add_parser(
        _PTS,
        help="import a Phoronix Test Suite result file",
        description="Imports a composite.xml of the eeio module, or of plain PTS with pts/fio "
        "or pts/iozone: one campaign per system in the file.",
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


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the results")
    parser.add_argument("--name", metavar="NAME", help="campaign name prefix")
    parser.set_defaults(action=import_runs)


def with_source(argv: Sequence[str]) -> list[str]:
    """`import composite.xml` -> `import pts composite.xml`; anything else as it is."""
    known = (_PTS, _RUNS, *mapping.shipped(), "-h", "--help")
    if len(argv) > 1 and argv[0] == "import" and argv[1] not in known:
        return ["import", _PTS, *argv[1:]]
    return list(argv)


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
