"""The error of this package."""

from eeio_limits import ShortError


class PowerError(ShortError):
    """Power cannot be read as requested.

    The message contains the problem, the file or device, and the remedy.
    """
