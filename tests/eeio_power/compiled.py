"""The helpers in C, compiled for a test."""

import shutil
from pathlib import Path

import pytest
from tests.processes import ran

import eeio_power

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
HELPERS = Path(eeio_power.__file__).parent / "helper"
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compiled(name: str, folder: Path, *flags: str) -> Path:
    command = ["cc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion"]
    command += ["-Werror", *flags, "-o", str(folder / name), str(HELPERS / f"{name}.c")]
    done = ran(command, code=None)
    if flags and "cannot find" in done.stderr:  # no sanitizers' libraries here
        return compiled(name, folder)
    assert done.returncode == 0, done.stderr
    return folder / name
