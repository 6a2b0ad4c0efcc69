"""The error every eeio_results and eeio failure derives from."""

from eeio_limits import ShortError


class EeioError(ShortError):
    """An error that a user can fix: the message contains the problem, its object, and the
    remedy."""


class ToolOutputError(EeioError):
    """A benchmark's output is truncated, empty, or not this tool's."""


class SchemaError(EeioError):
    """A stored file does not follow its schema, or follows a newer one."""
