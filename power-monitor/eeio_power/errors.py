"""The error of this package."""

from eeio.errors import ShortError


class PowerError(ShortError):
    """Power cannot be read as requested.

    The message contains the problem, the file or device, and the remedy.
    """
