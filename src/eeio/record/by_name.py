"""A campaign by its folder or its name: the Python interface for notebooks and scripts."""

import os
from pathlib import Path

from eeio.errors import EeioError, LimitError
from eeio.record.results_folder import results_root
from eeio.record.store import Campaign
from eeio.record.store import load as load_folder
from eeio.units.names import campaign_name


def load(path_or_name: str | os.PathLike[str]) -> "Campaign":
    """A campaign: from its folder if the argument is a path or contains `/`, else the stored
    campaign of that name, as `eeio list` shows it.

    Each record is checked. Raises `eeio.errors.EeioError` if there is no such campaign, and
    its subclass `SchemaError` if a file is damaged or was written by a newer eeio.
    """
    if isinstance(path_or_name, str) and "/" not in path_or_name:
        try:
            folder = results_root() / campaign_name(path_or_name)
        except LimitError as error:
            raise EeioError(str(error)) from error
    else:
        folder = Path(path_or_name)
    return load_folder(folder)
