"""`eeio setup`: installs benchmark tools, readers of meters and test profiles (setup/steps.sh)."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import eeio_power
from eeio import paths
from eeio.errors import EXIT_DONE, EXIT_FAILED, RejectedError
from eeio.options import Command, switch

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class SetupRequest:
    """`eeio setup`."""

    applications: bool = switch(
        "--applications",
        help="also database servers, sysbench and an NFS server, with their services stopped",
    )
    ai: bool = switch(
        "--ai",
        help="also DLIO and PyTorch for the processor (650 MB)",
    )
    no_packages: bool = switch(
        "--no-packages",
        help="leave packages unchanged",
    )
    dry_run: bool = switch(
        "--dry-run",
        help="only show the programs to install",
    )
    yes: bool = switch(
        "--yes",
        help="skip the confirmation",
    )


def setup(request: SetupRequest) -> int:
    flags = [
        f"--{name}"
        for name in ("applications", "ai", "no-packages")
        if vars(request)[name.replace("-", "_")]
    ]
    if not request.yes:
        _steps("plan", flags)
        if request.dry_run:
            return EXIT_DONE
        if not sys.stdin.isatty():
            raise RejectedError("setup requires confirmation; without a terminal give --yes")
        if input("Install it? [y/N] ").strip().lower() not in ("y", "yes"):
            raise RejectedError("nothing was installed")
    elif request.dry_run:
        raise RejectedError("--dry-run and --yes: one of them")
    if _steps("run", flags) == 0:
        return EXIT_DONE
    return EXIT_FAILED


def _steps(step: str, flags: list[str]) -> int:
    sys.stdout.flush()
    profiles = paths.shipped("test-profiles")
    environment = {
        **os.environ,
        "EEIO_SETUP_PYTHON": sys.executable,
        "EEIO_SETUP_PREFIX": sys.prefix,
        "EEIO_SETUP_READERS": str(Path(eeio_power.__file__).parent / "helper"),
        "EEIO_SETUP_JOURNAL": str(_PACKAGE / "measure/journal"),
        "EEIO_SETUP_PROFILES": str(profiles),
        "EEIO_SETUP_IOR": str(profiles.parent / "docker/ior"),  # only a checkout has it
    }
    steps = ["sh", str(_PACKAGE / "installation/steps.sh"), step, *flags]
    return subprocess.run(steps, env=environment, check=False).returncode


COMMAND = Command(
    "setup",
    SetupRequest,
    setup,
    help="install benchmark tools and test profiles",
    description="Installs the benchmark tools (Debian packages, with root or sudo), IOR, the "
    "readers of RAPL and IPMI, and the test profiles.",
)
