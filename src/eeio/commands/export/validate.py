"""`eeio export validate`, also called as `eeio validate`: checks a bundle."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from eeio.commands.arguments import add_format
from eeio.errors import EXIT_DONE, EXIT_FAILED
from eeio.exchange.validation import LEAST_REPETITIONS, examine
from eeio.report.table_and_plot import Table
from eeio.report.text import render_table
from eeio.units.external_text import shown


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "validate",
        help="check a bundle: checksums, records, rules of publication",
        description="Checks the SHA-256 of all files, reads all records, and lists what prevents "
        f"publication: preset quick, demo power, fewer than {LEAST_REPETITIONS} repetitions, no "
        "measured power, windows that end before the data is durable. Names the signer of a signed "
        "bundle. Exit status 1 if there is a problem. `eeio validate` is the same.",
    )
    parser.add_argument("bundle", metavar="BUNDLE", type=Path, help="folder or .tar.gz")
    parser.add_argument(
        "--signers", metavar="FILE", type=Path,
        help="require a signature by one of these (ssh-keygen's allowed signers)",
    )  # fmt: skip
    add_format(parser)
    parser.set_defaults(action=validate)


def validate(arguments: argparse.Namespace) -> int:
    examined = examine(arguments.bundle, arguments.signers)
    found = examined.problems
    if arguments.format == "json":
        body = {
            "schema_version": 1,
            "bundle": str(arguments.bundle),
            "valid": not found,
            "signer": examined.signer,
            "problems": [asdict(problem) for problem in found],
        }
        print(json.dumps(body))
    elif found:
        rows = tuple((one.kind, one.where, one.what) for one in found)
        print(render_table(Table("Problems", ("Kind", "Where", "What"), rows, frozenset()), None))
        count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
        print(f"eeio: {count}: not fit for publication", file=sys.stderr)
    else:
        signed = "" if examined.signer is None else f"; signed by {shown(examined.signer)}"
        print(f"{shown(str(arguments.bundle))}: whole, readable, and fit for publication{signed}")
    return EXIT_FAILED if found else EXIT_DONE
