"""`eeio study fleet`, also called as `eeio fleet`: a suite on many nodes."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.commands import run
from eeio.commands.arguments import OptionGroup, Parser, add_help_all
from eeio.commands.campaign_folders import analysis
from eeio.commands.output_file import add_formats, write_document
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, LimitError, RejectedError
from eeio.files import inputs
from eeio.measure import fleet_jobs as submitting
from eeio.measure.profiles import suite as suites
from eeio.record.publication import warnings_of
from eeio.units.external_text import shown
from eeio.units.names import campaign_name

if TYPE_CHECKING:
    from eeio.comparison.fleet import NodeResults

_TEMPLATE_BYTES = 1 << 20


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "fleet",
        help="run a suite on many nodes and compare them",
        description="Runs a suite on many nodes of a Slurm cluster, and compares their results. "
        "`eeio fleet` is the same.",
    )
    actions = parser.add_subparsers(dest="fleet_command", metavar="COMMAND", required=True)
    _add_submit(actions)
    _add_collect(actions)


class _ShowTemplate(argparse.Action):
    """Prints the template and ends, as --version does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(submitting.TEMPLATE, end="")
        parser.exit()


def _add_submit(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "submit",
        help="submit jobs that run a suite on each node",
        description="Submits one job a node to Slurm. Each node stores its results below "
        "FOLDER, which all nodes must see. A job that starts again resumes its campaign. Options "
        "after SUITE are those of `eeio run`; --directory must be local to each node, for example "
        "/scratch.",
    )
    parser.add_argument("suite", metavar="SUITE", help="suite name (see `eeio list`) or folder")
    parser.add_argument(
        "run_options", metavar="RUN OPTION ...", nargs=argparse.REMAINDER,
        help="options of `eeio run`",
    )  # fmt: skip
    options = OptionGroup(parser)
    options.add(
        "--nodes", metavar="LIST|N", required=True,
        help="node names, e.g. n[1-8], or the number of nodes",
    )  # fmt: skip
    options.add(
        "-o", "--output", metavar="FOLDER", type=Path,
        help="new folder (default: ./fleet-SUITE-TIME)",
    )  # fmt: skip
    options.add("--partition", metavar="NAME", help="partition of Slurm")
    options.rare("--template", metavar="FILE", type=Path, help="job script to use")
    options.rare(
        "--show-template", action=_ShowTemplate, nargs=0,
        help="print the job script that --template replaces, and exit",
    )  # fmt: skip
    options.add("--dry-run", action="store_true", help="make the folder, do not submit")
    add_help_all(parser)
    parser.set_defaults(action=submit)


def _add_collect(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "collect",
        help="compare the nodes of a fleet and find outliers",
        description="Finds the campaigns below folders (of `fleet submit`, or copied from the "
        "nodes) and in result files of PTS and Phoromatic (composite.xml). Shows each node's state "
        "and the nodes that differ from the others of their kind. Exit status 3 if some nodes have "
        "no complete results.",
    )
    parser.add_argument("paths", metavar="FOLDER|FILE", nargs="+", type=Path)
    add_formats(OptionGroup(parser), pager_is_rare=False)
    parser.set_defaults(action=collect)


def submit(arguments: argparse.Namespace) -> int:
    suite = _checked_suite(arguments.suite, arguments.run_options)
    time = submitting.now_utc()
    short = time[:19].translate(str.maketrans("T", "-", "-:"))
    folder = (arguments.output or Path(f"fleet-{Path(suite).name}-{short}")).absolute()
    try:
        campaign_name(folder.name)
    except LimitError as error:
        raise RejectedError(f"-o {shown(str(folder))}: {error}") from error
    template = submitting.TEMPLATE
    if arguments.template is not None:
        template = inputs.read_text(arguments.template, _TEMPLATE_BYTES)
    fleet = submitting.Submission(
        name=folder.name,
        suite=suite,
        options=tuple(arguments.run_options),
        nodes=submitting.node_names(arguments.nodes, arguments.partition),
        submitted_utc=time,
    )
    script = submitting.prepare(fleet, folder, template)
    if arguments.dry_run:
        print(f"not submitted; the job script is {script}")
        return EXIT_DONE
    partition = [] if arguments.partition is None else [f"--partition={arguments.partition}"]
    fleet = submitting.submit(fleet, folder, partition)
    print(f"jobs {fleet.jobs[0]} to {fleet.jobs[-1]}: {suite} on {len(fleet.nodes)} nodes")
    print(f"results: eeio fleet collect {shlex.quote(str(folder))}")
    return EXIT_DONE


def _checked_suite(name: str, run_options: list[str]) -> str:
    """The suite as the nodes find it. A wrong option is rejected here, before any node starts."""
    folder = suites.find(name).folder
    parser = Parser(prog="eeio")
    run.add_parser(parser.add_subparsers(parser_class=Parser, prog="eeio"))
    given = parser.parse_args(["run", name, *run_options])
    if given.name is not None:
        raise RejectedError(
            "--name: a fleet names the campaigns itself, by its folder and the node"
        )
    return str(folder.absolute()) if "/" in name else name


def _without_demo(nodes: "Sequence[NodeResults]") -> "list[NodeResults]":
    """Without the campaigns whose power is fictitious, if others have none of that."""
    demo = [node.campaign.is_demo for node in nodes if node.campaign is not None]
    if all(demo) or not any(demo):
        return list(nodes)
    why = "left out: its power is fictitious (meter demo), that of others is not"
    return [
        replace(node, campaign=None, remarks=(*node.remarks, why))
        if node.campaign is not None and node.campaign.is_demo
        else node
        for node in nodes
    ]


def collect(arguments: argparse.Namespace) -> int:
    with analysis():
        from eeio.comparison.fleet import fleet
        from eeio.exchange import fleet_collecting as collecting
        from eeio.report.documents.fleet import document
    found = collecting.collect(arguments.paths)
    nodes = _without_demo(found.nodes)
    compared = fleet(nodes)
    campaigns = [node.campaign for node in nodes if node.campaign is not None]
    warnings = dict.fromkeys(text for one in campaigns for text in warnings_of(one))
    title = f"Fleet {', '.join(path.resolve().name for path in arguments.paths)}"
    rejected = (*found.rejected, *found.remarks)
    write_document(arguments, document(compared, rejected, title, tuple(warnings)))
    done = all(node.state == "complete" for node in compared.nodes)
    return EXIT_DONE if done and not found.rejected else EXIT_DONE_WITH_INVALID_RUNS
