"""`eeio import`: campaigns made of results that other people have."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from eeio.arguments import add_format
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, EXIT_REJECTED, RejectedError
from eeio.importing import imported, mapping, results, runs
from eeio.pts import read as pts
from eeio_limits.text import shown
from eeio_results.errors import EeioError
from eeio_results.report import text
from eeio_results.report.columns import number
from eeio_results.report.parts import Table
from eeio_results.units import MB

_FILES, _PTS, _RUNS = "files", "pts", "runs"
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
        "lmbench, dd, sysbench, vdbench, hyperfine, NPB BT-IO and PTS. A row is one direction of "
        "one group of one report; rows are never joined. Exit status 3 if some files were "
        "rejected, 2 if no file could be used.",
    )
    files.add_argument("paths", metavar="FILE|FOLDER", nargs="+", type=Path)
    files.add_argument("--name", metavar="NAME", help="campaign name (default: from the path)")
    files.add_argument("--dry-run", action="store_true", help="show what was found, store nothing")
    add_format(files)
    files.set_defaults(action=import_files)
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
    """`import PATH` -> `import files PATH`; anything else as it is."""
    known = (_FILES, _PTS, _RUNS, *mapping.shipped(), "-h", "--help")
    if len(argv) > 1 and argv[0] == "import" and argv[1] not in known:
        return ["import", _FILES, *argv[1:]]
    return list(argv)


def import_files(arguments: argparse.Namespace) -> int:
    found = results.found(arguments.paths)
    before = results.stored_before()
    known = [one for one in found if one.sha256 in before]
    new = [one for one in found if one.reports and one.sha256 not in before]
    base = arguments.name or results.slug(arguments.paths[0].resolve().stem)
    made = results.campaigns(new, base if arguments.name else results.free_name(base))
    names = list(dict.fromkeys(before[one.sha256] for one in known if one.reports))
    stored = [] if arguments.dry_run else imported.store(made, "")
    for one in found:
        if one.tool == _PTS and not arguments.dry_run:
            try:
                stored += pts.import_file(one.path, arguments.name, None)
            except EeioError as error:
                one.rejected = str(error)
    names += [item.name for item in made] if arguments.dry_run else [name for name, *_ in stored]
    if arguments.format == "json":
        # File by file: there may be very many.
        print(f'{{"campaigns": {json.dumps(names)}, "files": [')
        for place, one in enumerate(found):
            print("," * (place > 0) + json.dumps(one.to_json(), allow_nan=False))
        print("]}")
    else:
        _show(found, before)
        _tell(stored)
    if not found:
        raise RejectedError(f"{arguments.paths[0]}: no file in it")
    for one in found:
        for note in dict.fromkeys(note for report in one.reports for note in report.notes):
            print(f"eeio: {shown(f'{one.path}: {note}')}", file=sys.stderr)
    rejected = [one for one in found if one.rejected]
    for one in rejected:
        print(f"eeio: {shown(f'{one.path}: rejected: {one.rejected}')}", file=sys.stderr)
    if len(rejected) == len(found):
        return EXIT_REJECTED
    return EXIT_DONE_WITH_INVALID_RUNS if rejected else EXIT_DONE


def _show(found: Sequence[results.FoundFile], before: dict[str, str]) -> None:
    rows = []
    for one in found:
        for place, report in enumerate(one.reports):
            for phase in report.phases:
                rate = phase.bandwidth_bytes_per_s
                rows.append((
                    str(one.path), f"{one.tool} {report.version or ''}".strip(), str(place),
                    phase.group, phase.operation or "-", phase.access_pattern or "-",
                    "-" if phase.request_bytes is None else str(phase.request_bytes),
                    {True: "yes", False: "no", None: "-"}[phase.direct],
                    "-" if phase.iodepth is None else str(phase.iodepth),
                    "-" if phase.jobs is None else str(phase.jobs),
                    "-" if rate is None else number(rate / MB),
                    "-" if phase.iops is None else number(phase.iops),
                    before.get(one.sha256, ""),
                ))  # fmt: skip
    header = ("File", "Tool", "Report", "Group", "Operation", "Pattern", "Request (B)", "Direct",
              "Depth", "Jobs", "MB/s", "IOPS", "Already in")  # fmt: skip
    if rows:
        table = Table("Results", header, tuple(rows), frozenset({2, 6, 8, 9, 10, 11}),
                      "one row per direction of a group of a report; -: not reported")  # fmt: skip
        print(text.render_table(table, None))


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
