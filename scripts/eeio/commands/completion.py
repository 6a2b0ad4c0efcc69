"""`eeio completion` and `eeio man`: made from the parser itself."""

import argparse

from eeio.errors import EXIT_DONE
from eeio_results.errors import EeioError


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "completion",
        help="shell completion, to be sourced",
        description='Prints shell completion: eval "$(eeio completion bash)".',
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(action=show)


def show(arguments: argparse.Namespace) -> int:
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise EeioError(
            "completion needs argcomplete: `pip install argcomplete` into eeio's environment"
        ) from error
    print(shellcode(["eeio"], shell=arguments.shell))
    return EXIT_DONE
