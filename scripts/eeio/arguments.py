"""The parser of the command line: argparse's, which also says what a mistyped word may mean."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from eeio.errors import EXIT_REFUSED
from eeio_limits.names import similar
from eeio_limits.quantities import shortened


class Parser(argparse.ArgumentParser):
    """Parsers of subcommands are of this class too (argparse makes them of their parent's)."""

    def error(self, message: str) -> NoReturn:
        """One line instead of the usage, and where the options are listed. Ends the program."""
        self.exit(EXIT_REFUSED, f"eeio: {message}. `{self.prog} --help` lists the options\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        meant = similar(str(value), known) or f" ({', '.join(known)})"
        raise argparse.ArgumentError(action, f"there is no {shortened(str(value))}{meant}")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, left = super().parse_known_args(args, namespace)
        # Of a subcommand too: its options are known here, to its parent they are not.
        unknown = next((word for word in left if word.startswith("--") and word != "--"), None)
        if unknown is not None:
            name = unknown.partition("=")[0]
            options = [word for word in self._option_string_actions if word.startswith("--")]
            self.error(f"there is no option {shortened(name)}{similar(name, options)}")
        return found, left


class WithProgram(Parser):
    """What follows `--` is one program with its arguments, and none of ours."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        words = list(args or ())
        if "--" not in words:
            return super().parse_known_args(words, namespace)
        place = words.index("--")
        found, rest = super().parse_known_args(words[:place], namespace)
        found.program = tuple(words[place + 1 :])
        return found, rest
