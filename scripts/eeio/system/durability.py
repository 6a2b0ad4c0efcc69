"""Why a flush does not show that data are on the drive, whatever it returns."""

from eeio.system.filesystem import Mount, is_served_by_a_program


def why_flushes_end_early(mount: Mount) -> str | None:
    """None if flushes of the file system reach its drive, as far as its mount shows."""
    if is_served_by_a_program(mount):
        return f"flushes end at the program that serves {mount.mount_point} ({mount.filesystem})"
    return None
