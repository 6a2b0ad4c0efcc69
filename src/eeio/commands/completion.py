"""`eeio completion`: shell completions, generated from the parser."""

import argparse
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eeio import paths
from eeio.errors import EXIT_DONE, EeioError
from eeio.measure.profiles import suite as suites
from eeio.options import Command, argument
from eeio_power.meters import meter_names


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """`eeio completion`."""

    shell: str = argument(
        "{bash,zsh,fish}",
        choices=("bash", "zsh", "fish"),
    )


def show(request: CompletionRequest) -> int:
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise EeioError(
            "completion needs argcomplete: `pip install argcomplete` into eeio's environment"
        ) from error
    shell = request.shell
    if request.shell == "zsh":
        shell = "bash"
    code = shellcode(["eeio"], shell=shell)
    if request.shell == "zsh" and "compdef" not in code:  # before argcomplete 3.1
        code = f"#compdef eeio\nautoload -Uz bashcompinit && bashcompinit\n{code}"
    print(code)
    return EXIT_DONE


def attach(parser: argparse.ArgumentParser) -> None:
    """Tells argcomplete what stands for an argument of any command: by its name, as the help shows
    it, so that a command need not say so itself."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in {id(found): found for found in action.choices.values()}.values():
                attach(command)
            continue
        completer = _completer(action)
        if completer is not None:
            # An attribute of argcomplete's, which argparse does not know.
            vars(action)["completer"] = completer


def _completer(action: argparse.Action) -> Callable[..., list[str]] | None:
    if action.metavar == "NAME|PATH" or (action.dest, action.metavar) == ("name", "NAME"):
        # The name of a new campaign is nobody's to complete; that of one to go on with is.
        if action.option_strings and action.dest == "name":
            return None
        return _campaigns
    if action.dest == "suite":
        return _suites
    if action.dest == "preset":
        return _presets
    if action.metavar == "SPEC":
        return _meters
    return None


def _campaigns(prefix: str, **_: object) -> list[str]:
    return [*_beginning(prefix, paths.campaigns()), *_folders(prefix, "campaign.json")]


def _suites(prefix: str, **_: object) -> list[str]:
    return [*_beginning(prefix, suites.available()), *_folders(prefix, suites.DEFINITION)]


def _presets(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Those of the suite that is named before; of any where none is yet."""
    chosen = getattr(parsed_args, "suite", None)
    presets: dict[str, None] = {}
    for name in [chosen] if chosen else suites.available():
        with suppress(EeioError, OSError, ValueError):
            presets |= dict.fromkeys(suites.find(name).presets)
    return _beginning(prefix, presets)


def _meters(prefix: str, **_: object) -> list[str]:
    return _beginning(prefix, ("auto", "none", *meter_names()))


def _beginning(prefix: str, candidates: Iterable[str]) -> list[str]:
    return [candidate for candidate in candidates if candidate.startswith(prefix)]


def _folders(prefix: str, holding: str) -> list[str]:
    """Folders that the path typed so far leads to: those that hold such a file as they are, the
    others with a slash, to go on from."""
    if "/" not in prefix:
        return []
    start, _, begun = prefix.rpartition("/")
    with suppress(OSError):
        return [
            f"{start}/{folder.name}" + ("" if (folder / holding).is_file() else "/")
            for folder in sorted(Path(start or "/").iterdir())
            if folder.name.startswith(begun) and folder.is_dir()
        ]
    return []


COMMAND = Command(
    "completion",
    CompletionRequest,
    show,
    help="print a shell completion script",
    description='Prints shell completion: eval "$(eeio completion bash)".',
)
