"""`eeio import`: campaigns made of results that others have: PTS files, folders with a map."""

import argparse
from pathlib import Path

from eeio.errors import EXIT_DONE, RefusedError
from eeio.importing import imported, mapping, pts, runs
from eeio.importing.imported import Imported

_RUNS = "runs"
# More remarks than this of one campaign are in its campaign.json, not on the screen.
_SHOWN = 8


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "import",
        help="make campaigns of a PTS result file, or of a folder of results",
        description="Stores results as campaigns: those of a composite.xml (of our module, or of "
        "plain PTS with pts/fio or pts/iozone); those of a published data set "
        f"({', '.join(mapping.shipped())}); or those of any folder whose files a map describes "
        "(docs/importing.md).",
    )
    parser.add_argument(
        "source", metavar="composite.xml|DATA-SET|runs", help="a file, a data set, or `runs`"
    )
    parser.add_argument("folder", metavar="DIR", type=Path, nargs="?", help="where the files lie")
    parser.add_argument("--map", metavar="MAP.yaml", type=Path, help="for `runs`: what they mean")
    parser.add_argument("--name", metavar="NAME", help="of the campaign, or what names begin with")
    parser.add_argument("--preset", help="that a PTS file ran with (default: what the file says)")
    parser.set_defaults(action=import_results)


def import_results(arguments: argparse.Namespace) -> int:
    if arguments.source == _RUNS or arguments.source in mapping.shipped():
        stored = imported.store(folder_of_runs(arguments), arguments.name or _prefix(arguments))
    else:
        if arguments.folder is not None or arguments.map is not None:
            raise RefusedError(
                f"{arguments.source} is neither `{_RUNS}` nor a data set that eeio knows "
                f"({', '.join(mapping.shipped())}), so it is a PTS result file: give it alone"
            )
        stored = pts.import_file(Path(arguments.source), arguments.name, arguments.preset)
    for name, folder, count in stored:
        print(f"campaign {name}: {count} runs, in {folder}")
    return EXIT_DONE


def folder_of_runs(arguments: argparse.Namespace) -> list[Imported]:
    """The campaigns of DIR, their remarks printed."""
    if arguments.folder is None:
        raise RefusedError(f"eeio import {arguments.source}: name the folder of the files")
    if arguments.source == _RUNS and arguments.map is None:
        raise RefusedError("eeio import runs: --map MAP.yaml says what the files mean")
    path = arguments.map or mapping.shipped()[arguments.source]
    campaigns = runs.read(mapping.load(path), arguments.folder)
    for campaign in campaigns:
        for remark in campaign.remarks[:_SHOWN]:
            print(f"{campaign.name}: {remark}")
        if len(campaign.remarks) > _SHOWN:
            more = len(campaign.remarks) - _SHOWN
            print(f"{campaign.name}: {more} more remarks, in its campaign.json")
    return campaigns


def _prefix(arguments: argparse.Namespace) -> str:
    return str(arguments.source if arguments.source != _RUNS else arguments.map.stem)
