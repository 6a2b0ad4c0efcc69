"""Some sequences of power readings; many by hand: tests/fuzz/run --sequences 20000."""

import pytest

from eeio_power import energy
from tests.fuzz import sequences

SEQUENCES = 500
SEED = 20260101


def test_no_energy_is_silently_wrong() -> None:
    tallies = sequences.tallied(SEED, SEQUENCES)
    assert sequences.problems(tallies) == []
    assert all(tally.sequences >= 10 for tally in tallies.values()), "each fault was tried"
    for fault in ("out of order", "clock stands still", "wraps in a gap"):
        tally = tallies[fault]  # type: ignore[index]
        assert tally.marked == tally.sequences, fault


def test_it_sees_an_energy_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "false_readings", lambda *_: [])
    wrong = sequences.problems(sequences.tallied(SEED, SEQUENCES))
    assert any(message.startswith("outlier") for message in wrong)


def test_the_same_seed_gives_the_same_sequences() -> None:
    assert [sequences.tried(7, index) for index in range(5)] == [
        sequences.tried(7, index) for index in range(5)
    ]
    assert sequences.tried(7, 0) != sequences.tried(8, 0)
