"""Whether a result can be: every number in it finite, and none beyond what any quantity may be."""

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from eeio.units.quantities import COUNT, FIGURE

_MOST = max(FIGURE.most, COUNT.most)


def insane(value: Any, missing: bool = False) -> str | None:
    """Where in a result a number stands that cannot be; None if there is none.

    `missing`: NaN stands for a value that was not read, as in samples.
    """
    stack: list[tuple[str, Any]] = [("result", value)]
    while stack:
        path, part = stack.pop()
        if isinstance(part, bool | str | bytes | None):
            continue
        if isinstance(part, int | float):
            if not abs(part) <= _MOST and not (missing and math.isnan(part)):
                return f"{path} is {part!r:.60}"
        elif is_dataclass(part) and not isinstance(part, type):
            stack += [(f"{path}.{f.name}", getattr(part, f.name)) for f in fields(part)]
        elif isinstance(part, Mapping):
            stack += [(f"{path}[{str(key)[:30]}]", item) for key, item in part.items()]
        elif isinstance(part, array | list | tuple | set | frozenset | Iterable):
            stack += [(f"{path}[{n}]", item) for n, item in enumerate(part)]
    return None
