"""The bounds in docs/reference/limits.md are those of the code, and all of them are there."""

import re
from pathlib import Path

from eeio.files import inputs
from eeio.units import names, quantities
from eeio.units.quantities import Quantity

PAGE = Path(__file__).parents[2] / "docs/reference/limits.md"


def rows() -> dict[str, str]:
    """First cell -> second cell, of the tables of the section about bounds."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## What may come in\n")[2]
    section = section.partition("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", section, re.MULTILINE)
    assert len(found) == len(dict(found))
    return dict(found)


def shown(name: str, value: int) -> str:
    return inputs.size(value) if name.endswith("_BYTES") else str(value)


def test_every_bound_is_on_the_page_with_its_value() -> None:
    bounds = {
        name: shown(name, value)
        for name, value in vars(inputs).items()
        if name.isupper()
        and name[0] != "_"
        and isinstance(value, int)
        and name not in ("KIB", "MIB", "GIB")
    }
    bounds["MOST_DIGITS"] = str(quantities.MOST_DIGITS)
    bounds["LONGEST_NAME"] = str(names.LONGEST_NAME)
    kinds = {
        name: f"{quantity.least:.6g} to {quantity.most:.6g} {quantity.unit}".strip()
        for name, quantity in vars(quantities).items()
        if isinstance(quantity, Quantity)
    }
    assert rows() == {**kinds, **bounds}
