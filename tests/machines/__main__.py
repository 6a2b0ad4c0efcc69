"""`python -m tests.machines` writes docs/machines.md anew; with `--accept FILE --name NAME` it adds
the machine of a capture before."""

import argparse
from pathlib import Path

from eeio.errors import EeioError
from eeio_power.errors import PowerError
from tests.machines import accept, page

parser = argparse.ArgumentParser(prog="python -m tests.machines", description=__doc__)
parser.add_argument("--accept", type=Path, metavar="FILE", help="capture of a user")
parser.add_argument("--name", help="name of the new folder, such as dell-r640")
arguments = parser.parse_args()
if (arguments.accept is None) != (arguments.name is None):
    parser.error("--accept and --name need each other")
if arguments.accept is not None:
    try:
        folder = accept.accept(arguments.accept, arguments.name)
    except (EeioError, PowerError) as error:
        parser.error(str(error))
    print(f"{folder}: written; check both files")
page.PATH.write_text(page.text(), encoding="utf-8")
