"""Writes the published schemas."""

from eeio_results.schemas import FOLDER, published, write

write(FOLDER, published())
