"""Writes the published schemas."""

from eeio.schemas.from_types import write
from eeio.schemas.published import FOLDER, published

write(FOLDER, published())
