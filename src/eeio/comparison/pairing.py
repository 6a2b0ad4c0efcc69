"""Which cells make a pair: alike in all factors but the one that is compared."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from eeio.comparison.cells import Cell, Where, fits

FOLLOWS = {"type": ("device",)}
"""A factor that cannot change by itself: another kind of drive is another drive."""

Rest = tuple[tuple[str, str], ...]
"""The levels of a cell in all factors that may not differ."""


class Index:
    """Cells by their levels, so that the pairs of two levels are found without testing all cells.

    Made once for all compared cells. The cost of a query grows with the cells that have the two
    levels and with the pairs that it returns.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = tuple(cells)
        self._places: dict[str, dict[str, list[int]]] = {}
        self._rests: dict[frozenset[str], list[Rest]] = {}
        self._partners: dict[tuple[str, str, frozenset[str]], dict[Rest, list[Cell]]] = {}

    def levels(self, factor: str) -> list[str]:
        """Those that can be compared, in the order of the cells."""
        return [word for word in self._at(factor) if word not in ("as found", "unknown", "any")]

    def pairs(self, factor: str, higher: str, lower: str) -> Iterator[tuple[Cell, Cell]]:
        """Cells of these two levels that are alike in all else, in their order."""
        at = self._at(factor)
        both = chain(at.get(higher, ()), at.get(lower, ()))
        free = _free({factor}, (self.cells[place] for place in both))
        rests, partners = self._rest(free), self._partners_of(factor, lower, free)
        for place in at.get(higher, ()):
            for partner in partners.get(rests[place], ()):
                yield self.cells[place], partner

    def groups(self, factor: str) -> Iterator[tuple[Rest, Cell]]:
        """Every cell, with its common part with those that differ from it in the factor."""
        return zip(self._rest(_free({factor}, self.cells)), self.cells, strict=True)

    def _at(self, factor: str) -> dict[str, list[int]]:
        """Level -> the places of its cells."""
        if factor not in self._places:
            positions = self._places[factor] = {}
            for index, cell in enumerate(self.cells):
                if factor in cell.factors:
                    positions.setdefault(cell.factors[factor], []).append(index)
        return self._places[factor]

    def _rest(self, free: frozenset[str]) -> list[Rest]:
        if free not in self._rests:
            self._rests[free] = [_rest(cell, free) for cell in self.cells]
        return self._rests[free]

    def _partners_of(self, factor: str, level: str, free: frozenset[str]) -> dict[Rest, list[Cell]]:
        key = (factor, level, free)
        if key not in self._partners:
            partners = self._partners[key] = {}
            rests = self._rest(free)
            for place in self._at(factor).get(level, ()):
                partners.setdefault(rests[place], []).append(self.cells[place])
        return self._partners[key]


def pairs(cells: Sequence[Cell], higher: Where, lower: Where) -> Iterator[tuple[Cell, Cell]]:
    """Cells with the levels `higher` and `lower` that are alike in all that these do not name.

    When the kind of drive differs, the drive itself may differ too.
    """
    free = _free({*higher, *lower}, (c for c in cells if fits(c, higher) or fits(c, lower)))
    partners: dict[Rest, list[Cell]] = {}
    for cell in cells:
        if fits(cell, lower):
            partners.setdefault(_rest(cell, free), []).append(cell)
    for cell in cells:
        if fits(cell, higher):
            for partner in partners.get(_rest(cell, free), ()):
                yield cell, partner


def _free(named: Iterable[str], cells: Iterable[Cell]) -> frozenset[str]:
    """Factors that may differ with those that are named, among these cells."""
    free = set(named)
    free.update(name for factor in named for name in FOLLOWS.get(factor, ()))
    if "operation" in free:
        free.add("phase")  # a phase is called after its operation
        free |= {"flush", "durable"}  # reads have none
    if "machine" in free and _one_drive_each(cells):
        free.add("device")
    if "device" in free:
        free.add("type")
    return frozenset(free)


def _one_drive_each(cells: Iterable[Cell]) -> bool:
    """Whether each machine has one drive, of another name than the others': then the machines are
    compared with their drives."""
    places = {(cell.factors["machine"], cell.factors["device"]) for cell in cells}
    drives = {drive for _, drive in places}
    return len({machine for machine, _ in places}) == len(places) == len(drives)


def _rest(cell: Cell, free: frozenset[str]) -> Rest:
    return tuple((name, level) for name, level in cell.factors.items() if name not in free)
