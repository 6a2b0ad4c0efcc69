"""The folder of all stored campaigns."""

import os
from pathlib import Path


def results_root() -> Path:
    """One folder a campaign."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(data) / "eeio/results"
