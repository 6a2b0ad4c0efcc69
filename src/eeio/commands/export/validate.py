"""`eeio export validate`, also called as `eeio validate`: checks a bundle."""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from eeio.commands.output_file import format_option
from eeio.errors import EXIT_DONE, EXIT_FAILED
from eeio.exchange.validation import LEAST_REPETITIONS, examine
from eeio.options import Command, argument, option
from eeio.report.table_and_plot import Table
from eeio.report.text import render_table
from eeio.units.external_text import shown


@dataclass(frozen=True, kw_only=True)
class ValidateRequest:
    """`eeio export validate`."""

    bundle: Path = argument(
        "BUNDLE",
        help="folder or .tar.gz",
        parse=Path,
    )
    signers: Path | None = option(
        "--signers",
        value="FILE",
        help="require a signature by one of these (ssh-keygen's allowed signers)",
        parse=Path,
    )
    format: str = format_option()


def validate(request: ValidateRequest) -> int:
    examined = examine(request.bundle, request.signers)
    problems = examined.problems
    if request.format == "json":
        body = {
            "schema_version": 1,
            "bundle": str(request.bundle),
            "valid": not problems,
            "signer": examined.signer,
            "problems": [asdict(problem) for problem in problems],
        }
        print(json.dumps(body))
    elif problems:
        rows = tuple((one.kind, one.where, one.what) for one in problems)
        print(render_table(Table("Problems", ("Kind", "Where", "What"), rows, frozenset()), None))
        count = "1 problem"
        if len(problems) != 1:
            count = f"{len(problems)} problems"
        print(f"eeio: {count}: not fit for publication", file=sys.stderr)
    else:
        signed = ""
        if examined.signer is not None:
            signed = f"; signed by {shown(examined.signer)}"
        print(f"{shown(str(request.bundle))}: whole, readable, and fit for publication{signed}")
    if problems:
        return EXIT_FAILED
    return EXIT_DONE


COMMAND = Command(
    "validate",
    ValidateRequest,
    validate,
    help="check a bundle: checksums, records, rules of publication",
    description="Checks the SHA-256 of all files, reads all records, and lists the reasons against "
    f"publication: preset quick, demo power, fewer than {LEAST_REPETITIONS} repetitions, no "
    "measured power, windows that end before the data is durable. Names the signer of a signed "
    "bundle. Exit status 1 if there is a problem. `eeio validate` is the same.",
)
