"""The one error of this package."""


class PowerError(Exception):
    """Power cannot be read as asked.

    The message says what was wrong, with which file or device, and what to do about it.
    """
