"""Failures of a campaign, by the exit code they lead to (docs/reference/exit-codes.md)."""

from eeio_results.errors import EeioError

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_REJECTED = 2
EXIT_DONE_WITH_INVALID_RUNS = 3
EXIT_WORSE = 4
EXIT_SIGNAL_BASE = 128


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
