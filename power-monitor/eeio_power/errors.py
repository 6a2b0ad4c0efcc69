"""The one error of this package."""

from eeio_limits import ShortError


class PowerError(ShortError):
    """Power cannot be read as asked.

    The message says what was wrong, with which file or device, and what to do about it.
    """
