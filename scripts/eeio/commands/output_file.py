"""Where a command writes its result: `-o PATH`, else standard output."""

import argparse
from pathlib import Path

from eeio import pager


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="PATH", type=Path, help="(default: stdout)")
    parser.add_argument(
        "--no-pager", action="store_true", help="on a terminal: print it all at once"
    )


def write_output(arguments: argparse.Namespace, content: str) -> None:
    """Writes `content`; the path alone is printed when it goes into a file. On a terminal a pager
    shows it."""
    if arguments.output is None:
        pager.show(content, wanted=not arguments.no_pager)
        return
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(content, encoding="utf-8")
    print(arguments.output)
