"""Results that Pavan et al. 2018 print, as data (claims.yaml).

Needs no scientific library: a report that is made on the system under test shows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, POWER
from eeio.errors import EeioError
from eeio.units.sizes import format_size, parse_size

METRICS = {
    "bandwidth": BANDWIDTH,
    "system": POWER["system"],
    "device": POWER["device"],
    "efficiency": EFFICIENCY,
}


@dataclass(frozen=True)
class Claim:
    """A figure that the paper prints. `decimals` is how exactly it prints it."""

    id: str
    section: str
    text: str
    printed: float
    unit: str
    decimals: int
    metric: str | None
    value: str | None
    where: Mapping[str, Any]
    higher: Mapping[str, Any]
    lower: Mapping[str, Any]


def printed() -> tuple[Claim, ...]:
    """All of them. Raises EeioError for one that names neither a metric nor a value, or both."""
    path = Path(__file__).with_name("claims.yaml")
    made = []
    for item in yaml.safe_load(path.read_text(encoding="utf-8"))["claims"]:
        if ("metric" in item) == ("value" in item):
            raise EeioError(f"{path}: {item['id']}: name a metric, or a value")
        made.append(
            Claim(
                id=item["id"],
                section=item["section"],
                text=item["text"],
                printed=float(item["printed"]),
                unit=item.get("unit", "%"),
                decimals=len(str(item["printed"]).partition(".")[2]),
                metric=METRICS[item["metric"]] if "metric" in item else None,
                value=item.get("value"),
                where=_sizes(item.get("where", {})),
                higher=_sizes(item.get("higher", {})),
                lower=_sizes(item.get("lower", {})),
            )
        )
    return tuple(made)


def _sizes(where: Mapping[str, Any]) -> Mapping[str, Any]:
    """Sizes as cells have them: 32k -> 32 KiB."""
    if "size" not in where:
        return where
    return {**where, "size": format_size(parse_size(where["size"]))}
