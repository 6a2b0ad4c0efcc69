"""What the edges of a window may be off, in the uncertainty of its energy."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.eeio_results import made

from eeio.commands.meter.meters import line
from eeio.measure.campaign import recorded_phase
from eeio_power import reading as measured
from eeio_power.session import Session


def test_the_limit_of_error_contains_what_the_edges_may_be_off() -> None:
    missing = made.energy(None, reasons=("too slow",))
    found, left = recorded_phase.with_edges((made.energy(40.0), missing), 0.05)
    assert found.uncertainty_j == pytest.approx(0.1 + 40.0 * 0.05)
    assert replace(found, uncertainty_j=0.1) == made.energy(40.0)
    assert left == missing


def test_the_same_under_pts() -> None:
    def energy(*_: object) -> list[dict[str, Any]]:
        return [
            {"power_w": 40.0, "uncertainty_j": 0.1},
            {"power_w": None, "uncertainty_j": None},
        ]

    session = cast(Session, SimpleNamespace(_energy=energy))
    body: Any = {"phases": [
        {"start_s": 0.0, "end_s": 2.0, "edges_unsure_s": 0.05, "until_durable": {"end_s": 3.0}},
        {"start_s": 0.0, "end_s": 2.0, "edges_unsure_s": None},
    ]}  # fmt: skip
    fio, other = Session._with_energy(session, body, 0.0)["phases"]
    for readings in (fio["energy"], fio["until_durable"]["energy"]):
        assert readings[0]["uncertainty_j"] == pytest.approx(0.1 + 40.0 * 0.05)
        assert readings[1]["uncertainty_j"] is None
    assert other["energy"][0]["uncertainty_j"] == 0.1
    assert "edges_unsure_s" not in fio, "the result file has no such field"


@pytest.mark.parametrize(("limit_j", "shown"), [(39.0, True), (41.0, False)])
def test_power_record_shows_no_energy_that_is_not_known(limit_j: float, shown: bool) -> None:
    one = measured.EnergyReading(
        domain="system", meter="meter", kind="measured", power_w=40.0, energy_j=80.0,
        uncertainty_j=limit_j, coverage=1.0, largest_gap_s=0.1, samples=20, lost=0, valid=True,
        reasons=(),
    )  # fmt: skip
    assert ("80.00 J" in line(one)) == shown
    assert ("known only to ±51 %" in line(one)) == (not shown)
