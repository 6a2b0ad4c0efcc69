"""The error every eeio_results and eeio failure derives from."""

from eeio_limits import ShortError


class EeioError(ShortError):
    """Something a user can act on: the message says what was wrong, with what, and what to do."""


class ToolOutputError(EeioError):
    """A benchmark's output is truncated, empty, or not this tool's."""


class SchemaError(EeioError):
    """A stored file does not follow its schema, or follows a newer one."""
