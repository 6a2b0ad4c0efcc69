"""Analysis of results: run records, tool output, the store, characterization and reports.

`load` is the Python interface for notebooks and scripts (docs/reference/stability.md).
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eeio_results.store import Campaign

__all__ = ["load"]


def load(path_or_name: str | os.PathLike[str]) -> "Campaign":
    """A campaign: from its folder if the argument is a path or contains `/`, else the stored
    campaign of that name, as `eeio list` shows it.

    Each record is checked. Raises `eeio_results.errors.EeioError` if there is no such campaign, and
    its subclass `SchemaError` if a file is damaged or was written by a newer eeio.
    """
    from pathlib import Path

    from eeio_limits import LimitError
    from eeio_limits.names import campaign_name
    from eeio_results import store
    from eeio_results.errors import EeioError
    from eeio_results.places import results_root

    if isinstance(path_or_name, str) and "/" not in path_or_name:
        try:
            folder = results_root() / campaign_name(path_or_name)
        except LimitError as error:
            raise EeioError(str(error)) from error
    else:
        folder = Path(path_or_name)
    return store.load(folder)
