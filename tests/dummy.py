"""The dummy profile and suites of it, as a test needs them."""

import os
import shutil
from pathlib import Path

from tests.suites import written


def suite(home: Path, *arguments: str) -> str:
    """A suite of dummy experiments with these arguments; its folder."""
    source = Path(os.environ["EEIO_SUITES"]) / "dummy-suite"
    protocol = (source / "protocol.yaml").read_text()
    entries = [("dummy", message, message) for message in arguments]
    return str(written(home / "suites/made", entries, protocol))


def profile(home: Path, script: str, before: str = "") -> Path:
    """The dummy profile, in the folder returned, which first does `script` in every run, and
    `before` (its pre.sh) before it."""
    folder = home / "profiles" / "eeio-dummy-1.0.0"
    shutil.copytree(Path(os.environ["EEIO_TEST_PROFILES"]) / folder.name, folder)
    program = folder / "eeio-dummy.sh"
    program.write_text(program.read_text().replace("set -eu\n", f"set -eu\n{script}\n"))
    if before:
        (folder / "pre.sh").write_text(before)
    return folder.parent
