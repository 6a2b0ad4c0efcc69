"""Names of campaigns, which become folders; and suggestions for mistyped names."""

import difflib
import re
from collections.abc import Iterable

from eeio.errors import LimitError
from eeio.units.quantities import shortened

LONGEST_NAME = 128
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@=-]*")


def campaign_name(name: str) -> str:
    """The name, if it can be a campaign's: letters, digits and `. _ - + @ =`, not beginning with a
    dot or a sign, 128 characters at most. Raises LimitError."""
    if len(name) > LONGEST_NAME or _NAME.fullmatch(name) is None:
        raise LimitError(
            f"campaign name {shortened(name)}: give letters (a-z, A-Z), digits and . _ - + @ =, "
            f"beginning with a letter, a digit or _, {LONGEST_NAME} characters at most"
        )
    return name


def similar(name: str, known: Iterable[str]) -> str:
    """` (did you mean report?)` with the known name that is most like this one; empty if none is
    like it."""
    known = list(known)
    # `--reps` is the beginning of a word, and unlike the complete one.
    begin = None
    if name.startswith("--") and len(name) > 4:
        begin = name[:5]
    names = [one for one in known if begin is not None and one.startswith(begin)]
    if len(names) != 1:
        names = difflib.get_close_matches(name[:LONGEST_NAME], known, n=1)
    if names:
        return f" (did you mean {names[0]}?)"
    return ""
