"""Panadero et al. 2012: an application held against the characterization of its machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eeio_results.studies import References, Study

if TYPE_CHECKING:
    from eeio_results.store import Campaign


def _references(campaigns: "Sequence[Campaign]", form: str) -> str | None:
    from eeio_results.comparison.cells import cells_of
    from eeio_results.studies.panadero2012 import tables
    from eeio_results.studies.panadero2012.references import references

    cells = [cell for campaign in campaigns for cell in cells_of(campaign)]
    found = references(cells)
    if not found:
        return None
    render = {"table": tables.to_text, "json": tables.to_json, "markdown": tables.to_markdown}
    return render[form](found)


STUDY = Study(references=References(_references, suite="eeio-panadero2012"))
