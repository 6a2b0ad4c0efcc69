"""The published data, by the paper's names of its parts."""

import statistics as descriptive
from collections.abc import Sequence
from functools import cached_property

from eeio_results.comparison.cells import Cell, cells_of, fits
from eeio_results.studies import Source

PC, MPSOC = "PC", "MPSoC"


class Data:
    """The published data, by the paper's names of its parts.

    Campaigns are known by their names in the import (`pc-hdd1`, `experiment2-mpsoc-ssd2`, ...);
    stored names may have a prefix.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.main: dict[tuple[str, str], Source] = {}
        self.others: dict[str, Source] = {}
        for source in sources:
            campaign = source.campaign
            name = campaign.name
            machine, device = campaign.machine.hostname, campaign.machine.device or ""
            if "experiment" in name or "lmbench" in name:
                at = name.find("experiment") if "experiment" in name else name.find("lmbench")
                self.others[name[at:]] = source
            elif name.endswith(f"{machine}-{device}".lower()):
                self.main[machine, device] = source

    @cached_property
    def cells(self) -> list[Cell]:
        """The 96 experiments."""
        return [cell for source in self.main.values() for cell in cells_of(source.campaign)]

    def missing(self) -> list[str]:
        """Configurations that the paper has and the data does not."""
        devices = ("HDD1", "HDD2", "SSD1", "SSD2")
        return [
            f"{machine} with {device}"
            for machine in (PC, MPSOC)
            for device in devices
            if (machine, device) not in self.main
        ]

    def cell(self, **levels: str) -> Cell:
        """The one cell with these levels."""
        found = [cell for cell in self.cells if fits(cell, levels)]
        if len(found) != 1:
            raise KeyError(f"{len(found)} experiments with {levels}")
        return found[0]

    def idle(self, machine: str, device: str, domain: str) -> float:
        """Median of the idle samples, W (section 5)."""
        return descriptive.median(self.main[machine, device].idle_watts[domain])

    def busy(self, machine: str, device: str, metric: str) -> Cell:
        """The experiment without cache that takes most (figure 6)."""
        chosen = [
            cell
            for cell in self.cells
            if fits(cell, {"machine": machine, "device": device, "buffer": "off"})
        ]
        return max(chosen, key=lambda cell: cell.median(metric))
