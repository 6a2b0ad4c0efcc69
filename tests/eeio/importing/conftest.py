from pathlib import Path

import pytest
from tests.conftest import InProcess
from tests.eeio.importing.importer import Importer


@pytest.fixture
def imported(home: Path, tmp_path: Path, in_process: InProcess) -> Importer:
    """In an empty home."""
    return Importer(tmp_path, in_process)
