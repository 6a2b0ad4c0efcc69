"""Power over time of a campaign, from its stored samples, for the report's page."""

from contextlib import suppress

from eeio.analysis.over_time import PowerSeries
from eeio.record.store import Campaign
from eeio_power import samples
from eeio_power.errors import PowerError
from eeio_power.samples import MeterInfo, power_over_time

_FILES = "power-*.csv.gz"


def unknown_delays(campaign: Campaign) -> tuple[str, ...]:
    """The meters whose delay was unknown when the campaign was measured."""
    infos: list[MeterInfo] = []
    for path in sorted((campaign.folder / "samples").glob(_FILES)):
        with suppress(PowerError):
            infos += samples.described(path)
    return samples.of_unknown_delay(infos)


def power_series(campaign: Campaign) -> list[PowerSeries]:
    """One series a meter, domain and segment of the campaign; none of a file that cannot be read:
    the records hold its energy all the same."""
    series: list[PowerSeries] = []
    for path in sorted((campaign.folder / "samples").glob(_FILES)):
        try:
            loaded = samples.load(path)
        except PowerError:
            continue
        for meter in loaded.meters:
            name, kind = meter.info.name, meter.info.kind
            series += [
                PowerSeries((power.domain, name, kind), power.times_s, power.watts)
                for power in power_over_time(meter)
            ]
    return series
