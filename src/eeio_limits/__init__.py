"""Limits of input and output: numbers, sizes of inputs, external text, contradictions.

The package below eeio_power, eeio_results and eeio: it imports none of them, and only the standard
library. Its errors are `LimitError`, a ValueError; the caller adds the file and the line.
"""

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
    """A number, a size or a text outside this package's limits; the message names the limit."""
