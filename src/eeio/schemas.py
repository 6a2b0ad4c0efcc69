"""Published schemas of the files that this package reads.

python -m eeio.schemas               # writes them anew, after a change of a type
"""

from pathlib import Path
from typing import Any

from eeio.exchange.pts import entry_form
from eeio.measure.machine.description import VERSION, Description
from eeio_results import schemas

FOLDER = Path(__file__).parent


def published() -> dict[str, dict[str, Any]]:
    """File name, from this folder on -> schema."""
    machine = {"machine": {"const": VERSION, "description": "the version of this form"}}
    return {
        "measure/machine/machine.schema.json": schemas.schema(
            Description, "eeio machine description", "machine.json or machine.yaml", machine
        ),
        "exchange/pts/entry.schema.json": schemas.one_of(
            (entry_form.Values, entry_form.Quantity, entry_form.Idle),
            "eeio in the JSON of an entry of a PTS result file",
        ),
    }


if __name__ == "__main__":
    schemas.write(FOLDER, published())
