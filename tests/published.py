"""Data that others published: read where it lies, never copied here (it has no licence)."""

import os
from pathlib import Path

import pytest

PUBLISHED = Path(
    os.environ.get("EEIO_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"),
    "ccpe2017",
)
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason=f"the published data is not in {PUBLISHED}"
)
