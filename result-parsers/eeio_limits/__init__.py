"""What may come in and go out: numbers, sizes of inputs, text of others.

The leaf under eeio_power, eeio_results and eeio: it imports none of them, and only the standard
library. Its refusals are `LimitError`, a ValueError; who called adds the file and the line.
"""


class LimitError(ValueError):
    """A number, a size or a text outside what this package allows; the message says which limit."""
