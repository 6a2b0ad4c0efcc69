"""How labels name a kind of I/O: in tables, figures, pages and answers."""

from collections.abc import Mapping

from eeio.units.sizes import format_size


def operation_label(operation: str | None, spatiality: str | None, phase: str | None) -> str:
    """`write (rewrite)`: the operation, and the tool's name for it if that is more specific."""
    operation = operation or "-"
    if phase and phase not in (operation, f"{spatiality} {operation}"):
        return f"{operation} ({phase})"
    return operation


def io_label(operation: str | None, spatiality: str | None, phase: str | None = None) -> str:
    """`sequential write (rewrite)`, `mixed`, `metadata (create)`: the order of requests, if the
    operation has one, and the operation."""
    text = operation_label(operation, spatiality, phase)
    if spatiality in (None, "none", operation):
        return text
    return f"{spatiality} {text}"


def sized(label: str, request_size_bytes: int | None, separator: str = " ") -> str:
    """The label with the size of requests, if there is a single one."""
    if request_size_bytes is None:
        return label
    return f"{label}{separator}{format_size(request_size_bytes)}"


def load_of(arguments: Mapping[str, str]) -> str | None:
    """`load 50 %`: the step of a load curve."""
    if "load" in arguments:
        return f"load {arguments['load']} %"
    return None
