"""`eeio profile install`: makes the profiles ready, as the first run would."""

import sys
from dataclasses import dataclass

from eeio.errors import EXIT_DONE, EXIT_FAILED, EeioError
from eeio.measure.profiles import installation
from eeio.measure.profiles import profile as profiles
from eeio.options import Command, argument


@dataclass(frozen=True, kw_only=True)
class InstallRequest:
    """`eeio profile install`."""

    profiles: tuple[str, ...] = argument(
        "PROFILE",
        help="test profile (default: all)",
        count="*",
    )


def install(request: InstallRequest) -> int:
    chosen = [profiles.find(name) for name in request.profiles or profiles.available()]
    failed = 0
    for profile in chosen:
        try:
            tool = installation.install(profile).tool
        except EeioError as error:
            print(f"eeio: {error}", file=sys.stderr)
            failed += 1
            continue
        state = "ready"
        if tool:
            state = f"{tool.version} {tool.path}"
        print(f"{profile.identifier}: {state}")
    if failed:
        return EXIT_FAILED
    return EXIT_DONE


COMMAND = Command(
    "install",
    InstallRequest,
    install,
    help="install test profiles (`run` does it when needed)",
    description="Runs the install.sh of test profiles.",
)
