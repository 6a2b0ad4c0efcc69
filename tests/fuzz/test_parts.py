"""Reports with missing, doubled and moved parts. More by hand: `tests/fuzz/run --parts 400000`."""

import pytest

from tests.fuzz import parts

SEED = 20261127


@pytest.mark.parametrize("number", [1500, pytest.param(20_000, marks=pytest.mark.slow)])
def test_no_changed_report_has_another_value(number: int) -> None:
    counts, findings = parts.tried(SEED, number)
    assert not findings, "\n".join(findings)
    tools = {name.partition(" ")[0] for name in counts}
    assert len(tools) >= 9 and sum(counts.values()) >= number
