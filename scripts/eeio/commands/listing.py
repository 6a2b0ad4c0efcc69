"""`eeio list`: suites, profiles and stored campaigns."""

import argparse

from eeio import paths
from eeio.errors import EXIT_DONE
from eeio.profiles import profile as profiles
from eeio.profiles import suite as suites
from eeio_results.errors import EeioError
from eeio_results.store import Store, read_body


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "list",
        help="suites, test profiles and stored campaigns",
        description="Lists suites, test profiles and stored campaigns.",
    )
    parser.set_defaults(action=show)


def show(arguments: argparse.Namespace) -> int:
    print("suites:")
    for suite in suites.available():
        presets = ", ".join(suite.protocols)
        print(f"  {suite.name}: {suite.title} ({len(suite.entries)} experiments; {presets})")
    print("test profiles:")
    for profile in profiles.available():
        state = "installed" if profiles.is_installed(profile) else "not installed yet"
        print(f"  {profile.identifier}: {profile.title} ({state})")
    print(f"campaigns in {paths.results_root()}:")
    for folder in sorted(paths.results_root().glob("*/")):
        try:
            body = read_body(folder)
            done = len(Store(folder).done_indices())
        except (EeioError, ValueError) as error:
            print(f"  {folder.name}: unreadable: {error}")
            continue
        print(f"  {folder.name}: {body['suite']}, {done} of {len(body['order'])} runs")
    return EXIT_DONE
