"""`eeio profile install`: makes the profiles ready, as the first run would."""

import argparse
import sys

from eeio.errors import EXIT_DONE, EXIT_FAILED, EeioError
from eeio.measure.profiles import installation
from eeio.measure.profiles import profile as profiles


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "install",
        help="install test profiles (`run` does it when needed)",
        description="Runs the install.sh of test profiles.",
    )
    parser.add_argument(
        "profiles", metavar="PROFILE", nargs="*", help="test profile (default: all)"
    )
    parser.set_defaults(action=install)


def install(arguments: argparse.Namespace) -> int:
    chosen = [profiles.find(name) for name in arguments.profiles or profiles.available()]
    failed = 0
    for profile in chosen:
        try:
            tool = installation.install(profile).tool
        except EeioError as error:
            print(f"eeio: {error}", file=sys.stderr)
            failed += 1
            continue
        print(f"{profile.identifier}: {f'{tool.version} {tool.path}' if tool else 'ready'}")
    return EXIT_FAILED if failed else EXIT_DONE
