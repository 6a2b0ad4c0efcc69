"""The errors of eeio, and failures of a campaign by the exit code they lead to
(docs/reference/exit-codes.md).

Each package below `eeio.measure` raises them too. This module imports only the standard library.
"""

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_REJECTED = 2
EXIT_DONE_WITH_INVALID_RUNS = 3
EXIT_WORSE = 4
EXIT_SIGNAL_BASE = 128

# The beginning of a message describes the problem, its end the remedy.
_HEAD, _TAIL = 1500, 300


class ShortError(Exception):
    """An error whose message is limited in length, for any text inside it."""

    def __str__(self) -> str:
        text = super().__str__()
        if len(text) <= _HEAD + _TAIL:
            return text
        return f"{text[:_HEAD]} [... {len(text)} characters ...] {text[-_TAIL:]}"


class LimitError(ShortError, ValueError):
    """A number, a size or a text outside its limits; the message names the limit. The caller adds
    the file and the line."""


class EeioError(ShortError):
    """An error that a user can fix: the message contains the problem, its object, and the
    remedy."""


class ToolOutputError(EeioError):
    """A benchmark's output is truncated, empty, or not this tool's."""


class SchemaError(EeioError):
    """A stored file does not follow its schema, or follows a newer one."""


class RejectedError(EeioError):
    """The input cannot be used: no changes were made (exit code 2)."""


class InterruptedCampaignError(BaseException):
    """A signal ended the campaign between two well-defined states (exit code 128 + signal).

    Like KeyboardInterrupt no Exception, so that nothing which handles a run's errors takes it
    for one of them.
    """

    def __init__(self, signum: int, message: str) -> None:
        super().__init__(message)
        self.signum = signum
