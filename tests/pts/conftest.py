"""Tests that need the Phoronix Test Suite itself are marked `pts`, and say why they do not run."""

import pytest

from tests.pts.harness import why_not


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("pts")]
    reason = why_not() if marked else None
    if reason is not None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))
