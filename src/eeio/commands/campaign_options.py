"""The options that `run`, `plan` and `meter check --suite` share: those that a campaign stores."""

from dataclasses import dataclass, fields

from eeio.errors import EeioError, LimitError
from eeio.measure.campaign import sweep
from eeio.options import changed, option
from eeio.record.design import Options
from eeio.units.amounts import reading_rate
from eeio_power.monitor import COUNTER_RATE_HZ, SAMPLE_RATE_HZ


def _sweep(text: str) -> str:
    try:
        return sweep.parse(text).requested
    except EeioError as error:
        raise LimitError(str(error).removeprefix("--sweep ")) from error


@dataclass(frozen=True, kw_only=True)
class CampaignRequest(Options):
    """The stored options, with one rate for meters and counters."""

    sweeps: tuple[str, ...] = changed(Options, "sweeps", parse=_sweep)
    rate: float | None = option(
        "--rate",
        value="HZ",
        parse=reading_rate,
        help=f"readings per second, at most 100 (default: {SAMPLE_RATE_HZ:g}; counters "
        f"{COUNTER_RATE_HZ:g})",
        group="power",
        rare=True,
    )

    def options(self) -> Options:
        """The stored form."""
        named = {field.name: getattr(self, field.name) for field in fields(Options)}
        named["rate_hz"] = self.rate or SAMPLE_RATE_HZ
        named["counter_rate_hz"] = self.rate or COUNTER_RATE_HZ
        return Options(**named)
