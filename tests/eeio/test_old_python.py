"""On a Python that is too old one line says so, before anything fails for another reason."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import ran

ROOT = Path(__file__).parents[2]
OLD = "import sys, collections\nsys.version_info = collections.namedtuple('v', 'a b c')(3, 9, 2)\n"


@pytest.mark.parametrize("real", [False, True])
def test_it_is_reported_in_one_line(real: bool) -> None:
    arguments = [sys.executable, "-c", OLD + "import runpy; runpy.run_module('eeio')"]
    if real:
        old = next(filter(None, map(shutil.which, ("python3.9", "python3.10"))), None)
        if old is None or subprocess.run([old, "-c", ""], check=False).returncode != 0:
            pytest.skip("no python3.9 or python3.10 here")
        arguments = [old, "-m", "eeio", "doctor"]
    done = ran(arguments, cwd=ROOT / "src", code=1)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "eeio requires 3.11 or newer" in done.stderr
