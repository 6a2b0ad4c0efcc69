"""An importer in an empty home."""

from pathlib import Path

import pytest
from tests.eeio.importing.importer import Importer
from tests.plugin import InProcess


@pytest.fixture
def imported(home: Path, tmp_path: Path, in_process: InProcess) -> Importer:
    """In an empty home."""
    return Importer(tmp_path, in_process)
