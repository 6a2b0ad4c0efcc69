"""Where a command writes its result: `-o PATH`, else standard output."""

import argparse
import sys
from pathlib import Path


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="PATH", type=Path, help="(default: stdout)")


def write_output(arguments: argparse.Namespace, content: str) -> None:
    """Writes `content`; the path alone is printed when it goes into a file."""
    if arguments.output is None:
        sys.stdout.write(content)
        return
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(content, encoding="utf-8")
    print(arguments.output)
