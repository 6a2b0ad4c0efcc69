"""A machine with a BMC, for the tests of its meters."""

import os
from pathlib import Path

import pytest
from tests.simulators.ipmitool import install_fake_ipmitool


def machine_with_bmc(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with /dev/ipmi0; the BMC's answers are in `watts`."""
    (root / "dev").mkdir()
    (root / "dev/ipmi0").write_text("")
    (root / "watts").write_text("301")
    install_fake_ipmitool(root / "bin", root / "watts")
    monkeypatch.setenv("PATH", f"{root / 'bin'}:{os.environ['PATH']}")
    return root
