"""SMT and turbo, each switched by itself, between runs, and put back at the end of a campaign.

Without a frequency: where one is set, both are off (system/frequency.py). Order, and why. All that
may be changed is noted before the first write, SMT last: the journal is undone newest first, so the
processors that SMT brings back are there when their own switches and limits are put back. SMT is
switched before turbo, so that turbo's switches of all processors in use are there.

`root` is another tree than `/`, for tests.
"""

from pathlib import Path
from typing import Literal

from eeio.errors import RefusedError
from eeio.system import frequency
from eeio.system.undo import UndoJournal
from eeio_results.errors import EeioError

State = Literal["on", "off"]


def check(smt: tuple[str, ...], turbo: tuple[str, ...], root: Path = Path("/")) -> None:
    """RefusedError where what is asked for cannot be switched on this machine."""
    for name, states in (("--smt", smt), ("--turbo", turbo)):
        if wrong := [state for state in states if state not in ("on", "off")]:
            raise RefusedError(f"{name} {wrong[0]}: on, off, or on,off")
    if smt:
        found = frequency.smt_state(root)
        if found not in ("on", "off"):
            raise RefusedError(
                f"--smt: this machine has none to switch (the kernel's word: {found or 'none'})"
            )
    if turbo:
        try:
            switches, state = frequency.turbo_switches(root), frequency.turbo_state(root)
        except EeioError as error:
            raise RefusedError(f"--turbo: {error}") from error
        if state is None:
            raise RefusedError("--turbo: this machine shows no switch for it")
        if "on" in smt and found == "off" and not _common(switches):
            raise RefusedError(
                "--smt on with --turbo: the processors that SMT brings have switches of their own, "
                "whose state is not known before: turn SMT on first"
            )


def switch(
    smt: str | None, turbo: str | None, journal: UndoJournal, root: Path = Path("/")
) -> None:
    """Brings both into these states; None leaves one as it is. May be called again and again with
    one journal.

    EeioError when a file may not be written, or reads back differently.
    """
    control = frequency.smt_control(root)
    noted = {entry.subject for entry in journal.entries}
    changes_smt = smt is not None and smt != frequency.smt_state(root)
    if turbo is not None:
        switches = [path for path, _ in frequency.turbo_switches(root)]
        frequency.check_writable([*([control] if changes_smt else []), *switches])
        frequency.note_policies(root, journal)
        frequency.note([path for path in switches if str(path) not in noted], journal)
    if changes_smt:
        assert smt is not None
        frequency.check_writable([control])
        if str(control) not in noted:
            frequency.note([control], journal)
        frequency.write(control, smt)
    if turbo is None:
        return
    found = frequency.turbo_switches(root)
    # On: the common switch first, without which those of the policies do nothing.
    for path, off in found if turbo == "off" else reversed(found):
        wanted = off if turbo == "off" else str(1 - int(off))
        if path.read_text(encoding="ascii").strip() != wanted:
            frequency.write(path, wanted)


def _common(switches: list[tuple[Path, str]]) -> bool:
    return any("policy" not in path.parent.name for path, _ in switches)
