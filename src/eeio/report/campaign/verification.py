"""Notes on what meters were verified on, as their kinds say it (`eeio_power.meters.About`)."""

from collections.abc import Iterable, Mapping


def verification_notes(
    meters: Iterable[str], specs: Iterable[str], of_kinds: Mapping[str, str]
) -> list[str]:
    """One line for each kind of verification: `rapl, nut: verified on simulator, not on hardware`.

    `meters` are names in readings, `specs` show the kind of those with another name, and `of_kinds`
    is what the kinds say.
    """
    specs = tuple(specs)
    names: dict[str, list[str]] = {}
    for meter in dict.fromkeys(meters):
        verified = of_kinds.get(_kind(meter, specs, of_kinds))
        if verified is not None:
            names.setdefault(verified, []).append(meter)
    return [
        f"{', '.join(of_verified)}: verified on {verified}"
        + ("" if verified.startswith("hardware") else ", not on hardware")
        for verified, of_verified in names.items()
    ]


def _kind(meter: str, specs: Iterable[str], of_kinds: Mapping[str, str]) -> str:
    """The kind of a meter by its name in readings."""
    name = meter.rpartition(": ")[2]  # `2 nodes: rapl`
    for spec in specs:
        kind, *options = spec.split(",")
        if f"name={name}" in options:
            name = kind.partition(":")[0]
    return name if name in of_kinds else name.rstrip("0123456789")  # `nvme0`
