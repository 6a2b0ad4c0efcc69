"""Doubles of programs need seconds to answer on a busy machine."""

from collections.abc import Iterator

import pytest
import yaml

from eeio_power.meters import ipmi, pmic
from tests.waiting import PATIENCE_S


@pytest.fixture(scope="package", autouse=True)
def _fast_yaml() -> Iterator[None]:
    """Each machine is read ten times: PyYAML's loader in C takes a tenth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "SafeLoader", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        yield


@pytest.fixture(scope="package", autouse=True)
def _slow_answers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pmic, "ANSWER_S", PATIENCE_S)
        patch.setattr(ipmi, "ANSWER_S", PATIENCE_S)
        yield
