from collections.abc import Iterator

import pytest
from tests.eeio_power.one_meter import close_all


@pytest.fixture(autouse=True)
def _meters_are_closed() -> Iterator[None]:
    yield
    close_all()
