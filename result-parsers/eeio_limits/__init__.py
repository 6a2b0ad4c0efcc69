"""What may come in and go out: numbers, sizes of inputs, text of others; what cannot all be true.

The leaf under eeio_power, eeio_results and eeio: it imports none of them, and only the standard
library. Its refusals are `LimitError`, a ValueError; who called adds the file and the line.
"""

# Of a message: its beginning says what is wrong with what, its end what to do.
_HEAD, _TAIL = 1500, 300


class ShortError(Exception):
    """An error whose message has an end, whatever text of others stands in it."""

    def __str__(self) -> str:
        text = super().__str__()
        if len(text) <= _HEAD + _TAIL:
            return text
        return f"{text[:_HEAD]} [... {len(text)} characters ...] {text[-_TAIL:]}"


class LimitError(ShortError, ValueError):
    """A number, a size or a text outside what this package allows; the message says which limit."""
