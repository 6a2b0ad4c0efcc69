"""A module of PTS that was installed before the application moved starts its parts by their former
names."""

import sys
from pathlib import Path

import pytest
from tests.processes import ran

SUITE = Path(__file__).parents[3] / "suites/eeio-suite"


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [("protocol", ("quick", str(SUITE)), 0), ("trial", ("eeio-fio-1.0.0", "quick", "no", "no"), 1)],
)
def test_a_former_name_gives_the_same(name: str, arguments: tuple[str, ...], code: int) -> None:
    now, then = (
        ran([sys.executable, "-P", "-m", f"{package}.{name}", *arguments], code=code)
        for package in ("eeio.pts")
    )
    assert (then.stdout, then.stderr) == (now.stdout, now.stderr)
    assert then.stdout or then.stderr
