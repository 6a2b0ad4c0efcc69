"""Where a command writes: `-o FILE`, else standard output. The suffix chooses the format."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eeio import pager

_FORMATS = {
    ".html": "html", ".json": "json", ".csv": "csv", ".md": "markdown", ".tex": "latex",
}  # fmt: skip


class _Output(argparse.Action):
    """Stores the path; its suffix chooses the format if no other than the default was chosen."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        path = Path(str(values))
        setattr(namespace, self.dest, path)
        if getattr(namespace, "format", None) != "table" or path.suffix not in _FORMATS:
            return
        chosen = _FORMATS[path.suffix]
        formats = next(action.choices for action in parser._actions if action.dest == "format")
        if chosen not in (known := tuple(formats or ())):
            parser.error(f"{path}: {parser.prog} writes {', '.join(known)} only")
        namespace.format = chosen


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", action=_Output,
        help="(default: stdout); .html, .json, .csv, .md or .tex chooses the format",
    )  # fmt: skip
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
