"""`eeio list`: suites, profiles and stored campaigns."""

import argparse
from collections.abc import Callable
from pathlib import Path

from eeio import paths
from eeio.errors import EXIT_DONE
from eeio.profiles import profile as profiles
from eeio.profiles import suite as suites
from eeio_results.errors import EeioError
from eeio_results.store import progress


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "list",
        help="suites, test profiles and stored campaigns",
        description="Lists suites, test profiles and stored campaigns.",
    )
    parser.set_defaults(action=show)


def show(arguments: argparse.Namespace) -> int:
    print("suites:")
    for name, folder in suites.available().items():
        print(f"  {name}: {_said_of(_suite, folder)}")
    print("test profiles:")
    for name, folder in profiles.available().items():
        print(f"  {name}: {_said_of(_profile, folder)}")
    print(f"campaigns in {paths.results_root()}:")
    for folder in sorted(paths.results_root().glob("*/")):
        print(f"  {folder.name}: {_said_of(_campaign, folder)}")
    return EXIT_DONE


def _said_of(words: Callable[[Path], str], folder: Path) -> str:
    """One that is damaged hides none of the others."""
    try:
        return words(folder)
    except (EeioError, OSError, ValueError) as error:
        return f"unreadable: {error}"


def _suite(folder: Path) -> str:
    suite = suites.load(folder)
    return f"{suite.title} ({len(suite.entries)} experiments; {', '.join(suite.presets)})"


def _profile(folder: Path) -> str:
    profile = profiles.load(folder)
    state = "installed" if profiles.is_installed(profile) else "not installed yet"
    return f"{profile.title} ({state})"


def _campaign(folder: Path) -> str:
    found = progress(folder)
    return f"{found.suite}, {found.stored_runs} of {found.planned_runs} runs"
