"""What a block device carries: file systems, RAID, LVM, LUKS, swap, partition tables."""

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio.system.undo import run_command
from eeio_limits.text import shown
from eeio_results.errors import EeioError

# A drive that needs longer to give a few blocks is no drive to write to.
_TIMEOUT_S = 30
# A backup GPT and the protective table in its first sector belong to the table.
_PROTECTIVE = "PMBR"


@dataclass(frozen=True)
class Signature:
    """One thing that libblkid finds on `device`; None where it has no label or no UUID."""

    device: str
    type: str
    label: str | None = None
    uuid: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the user may call it to give it up, the best first. One that has a label or a UUID
        is named by it: `ext4` alone might be any disk's."""
        label = self.label if self.label and self.label.isprintable() else None
        return tuple(f"{self.type}:{name}" for name in (label, self.uuid) if name) or (self.type,)

    @property
    def text(self) -> str:
        """Harmless to print: a label may hold anything."""
        label = "" if self.label is None else f" {self.label!a}"
        uuid = "" if self.uuid is None else f" (UUID {self.uuid})"
        return shown(f"{self.type}{label}{uuid}")


def found(nodes: Iterable[Path]) -> list[Signature]:
    """All signatures on these devices, whatever else is on them; EeioError when one cannot be told.

    wipefs without -a only reads. Unlike `blkid -p` it is not ambivalent where a disk carries what
    is left of several, and names all of them.
    """
    signatures: dict[Signature, None] = {}
    for node in nodes:
        try:
            text = run_command(
                ["wipefs", "--json", "--output", "TYPE,LABEL,UUID", str(node)], _TIMEOUT_S
            )
            signatures.update(dict.fromkeys(_parse(str(node), text)))
        except EeioError as error:
            raise EeioError(f"{node}: what is on it cannot be told ({error})") from error
    return list(signatures)


def _parse(node: str, text: str) -> list[Signature]:
    if not text.strip():
        return []  # older wipefs prints nothing where there is nothing
    try:
        body: dict[str, Any] = json.loads(text)
        listed = [
            Signature(node, str(item["type"]), _text(item, "label"), _text(item, "uuid"))
            for item in body["signatures"]
        ]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise EeioError(f"wipefs said {text[:100]!a}") from error
    tables = any(signature.type == "gpt" for signature in listed)
    return [each for each in listed if not (tables and each.type == _PROTECTIVE)]


def _text(item: dict[str, Any], name: str) -> str | None:
    value = item.get(name)
    if not isinstance(value, str | None):
        raise TypeError(f"{name} is no text")
    return value


def unnamed(signatures: Iterable[Signature], named: Iterable[str]) -> list[Signature]:
    """Those that none of the names means."""
    names = set(named)
    return [signature for signature in signatures if not names.intersection(signature.names)]


def listed(signatures: Iterable[Signature], node: Path) -> str:
    """All of them in words, those of partitions with where they are."""
    return "; ".join(
        s.text if s.device == str(node) else f"{s.text} on {s.device}" for s in signatures
    )


def options(signatures: Iterable[Signature]) -> str:
    """What to type to give these up."""
    names = dict.fromkeys(signature.names[0] for signature in signatures)
    return " ".join(f"--lose {shlex.quote(name)}" for name in names)
