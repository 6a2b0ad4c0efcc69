"""`eeio study fleet`, also called as `eeio fleet`: a suite on many nodes."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.commands import parsers, run
from eeio.commands.campaign_folders import analysis
from eeio.commands.output_file import document_format, output_file, pager_switch, write_document
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, LimitError, RejectedError
from eeio.files import inputs
from eeio.measure import fleet_jobs as submitting
from eeio.measure.profiles import suite as suites
from eeio.options import Command, Family, argument, option, switch
from eeio.record.publication import warnings_of
from eeio.units.external_text import shown
from eeio.units.names import campaign_name

if TYPE_CHECKING:
    from eeio.comparison.fleet import NodeResults

_TEMPLATE_BYTES = 1 << 20


class _ShowTemplate(argparse.Action):
    """Prints the template and ends, as --version does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(submitting.TEMPLATE, end="")
        parser.exit()


@dataclass(frozen=True, kw_only=True)
class SubmitRequest:
    """`eeio study fleet submit`."""

    suite: str = argument("SUITE", help="suite name (see `eeio list`) or folder")
    run_options: tuple[str, ...] = argument(
        "RUN OPTION ...", count="...", help="options of `eeio run`"
    )
    nodes: str = option(
        "--nodes",
        value="LIST|N",
        required=True,
        help="node names, e.g. n[1-8], or the number of nodes",
    )
    output: Path | None = option(
        "-o",
        "--output",
        value="FOLDER",
        parse=Path,
        help="new folder (default: ./fleet-SUITE-TIME)",
    )
    partition: str | None = option("--partition", value="NAME", help="partition of Slurm")
    template: Path | None = option(
        "--template", value="FILE", parse=Path, help="job script to use", rare=True
    )
    show_template: None = option(
        "--show-template",
        action=_ShowTemplate,
        count=0,
        help="print the job script that --template replaces, and exit",
        rare=True,
    )
    dry_run: bool = switch("--dry-run", help="make the folder, do not submit")


@dataclass(frozen=True, kw_only=True)
class CollectRequest:
    """`eeio study fleet collect`."""

    paths: tuple[Path, ...] = argument("FOLDER|FILE", count="+", parse=Path)
    format: str = document_format()
    output: Path | None = output_file()
    no_pager: bool = pager_switch(rare=False)


def submit(request: SubmitRequest) -> int:
    suite = _checked_suite(request.suite, request.run_options)
    time = submitting.now_utc()
    short = time[:19].translate(str.maketrans("T", "-", "-:"))
    folder = (request.output or Path(f"fleet-{Path(suite).name}-{short}")).absolute()
    try:
        campaign_name(folder.name)
    except LimitError as error:
        raise RejectedError(f"-o {shown(str(folder))}: {error}") from error
    template = submitting.TEMPLATE
    if request.template is not None:
        template = inputs.read_text(request.template, _TEMPLATE_BYTES)
    fleet = submitting.Submission(
        name=folder.name,
        suite=suite,
        options=request.run_options,
        nodes=submitting.node_names(request.nodes, request.partition),
        submitted_utc=time,
    )
    script = submitting.prepare(fleet, folder, template)
    if request.dry_run:
        print(f"not submitted; the job script is {script}")
        return EXIT_DONE
    partition = []
    if request.partition is not None:
        partition = [f"--partition={request.partition}"]
    fleet = submitting.submit(fleet, folder, partition)
    print(f"jobs {fleet.jobs[0]} to {fleet.jobs[-1]}: {suite} on {len(fleet.nodes)} nodes")
    print(f"results: eeio fleet collect {shlex.quote(str(folder))}")
    return EXIT_DONE


def _checked_suite(name: str, run_options: Sequence[str]) -> str:
    """The suite as the nodes find it. A wrong option is rejected here, before any node starts."""
    folder = suites.find(name).folder
    given = parsers.parsed(run.COMMAND, [name, *run_options])
    if given.name is not None:
        raise RejectedError(
            "--name: a fleet names the campaigns itself, by its folder and the node"
        )
    if "/" in name:
        return str(folder.absolute())
    return name


def _without_demo(nodes: "Sequence[NodeResults]") -> "list[NodeResults]":
    """Without the campaigns whose power is fictitious, if others have none of that."""
    demo = [node.campaign.is_demo for node in nodes if node.campaign is not None]
    if all(demo) or not any(demo):
        return list(nodes)
    reason = "left out: its power is fictitious (meter demo), that of others is not"
    return [
        replace(node, campaign=None, remarks=(*node.remarks, reason))
        if node.campaign is not None and node.campaign.is_demo
        else node
        for node in nodes
    ]


def collect(request: CollectRequest) -> int:
    with analysis():
        from eeio.comparison.fleet import fleet
        from eeio.exchange import fleet_collecting as collecting
        from eeio.report.documents.fleet import document
    collected = collecting.collect(request.paths)
    nodes = _without_demo(collected.nodes)
    compared = fleet(nodes)
    campaigns = [node.campaign for node in nodes if node.campaign is not None]
    warnings = dict.fromkeys(text for campaign in campaigns for text in warnings_of(campaign))
    title = f"Fleet {', '.join(path.resolve().name for path in request.paths)}"
    rejected = (*collected.rejected, *collected.remarks)
    write_document(request, document(compared, rejected, title, tuple(warnings)))
    done = all(node.state == "complete" for node in compared.nodes)
    if done and not collected.rejected:
        return EXIT_DONE
    return EXIT_DONE_WITH_INVALID_RUNS


COMMAND = Family(
    "fleet",
    help="run a suite on many nodes and compare them",
    description="Runs a suite on many nodes of a Slurm cluster, and compares their results. "
    "`eeio fleet` is the same.",
    commands=(
        Command(
            "submit",
            SubmitRequest,
            submit,
            help="submit jobs that run a suite on each node",
            description="Submits one job a node to Slurm. Each node stores its results below "
            "FOLDER, which all nodes must see. A job that starts again resumes its campaign. "
            "Options after SUITE are those of `eeio run`; --directory must be local to each node, "
            "for example /scratch.",
        ),
        Command(
            "collect",
            CollectRequest,
            collect,
            help="compare the nodes of a fleet and find outliers",
            description="Finds the campaigns below folders (of `fleet submit`, or copied from the "
            "nodes) and in result files of PTS and Phoromatic (composite.xml). Shows each node's "
            "state and the nodes that differ from the others of their kind. Exit status 3 if some "
            "nodes have no complete results.",
        ),
    ),
)
