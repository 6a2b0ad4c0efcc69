"""Tables and logs of other people's results: delimiters, decimal commas, numbers that are none."""

import csv
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError, LimitError
from eeio.files import inputs
from eeio.units.quantities import FIGURE, MOST_DIGITS
from eeio_power.csv_log import DECIDING_ROWS, has_decimal_comma, last_digit
from eeio_power.errors import PowerError
from eeio_power.resolution import CUT_OFF_STEPS, product_step_w

_WITH_COMMAS = re.compile(r"[+-]?\d*,[\d,]*\d(\.\d*)?([eE][+-]?\d+)?")


@dataclass(frozen=True)
class ImportedTable:
    """A delimited file with a header line; rows are cells, with their line numbers."""

    path: Path
    columns: tuple[str, ...]
    rows: list[tuple[int, list[str]]]
    decimal_comma: bool
    ambiguous: str
    """A number with a comma that may be decimal or not, and its two values."""

    def place(self, column: str) -> int:
        """The index of a column. Raises EeioError if there is none of that name, or several."""
        times = self.columns.count(column)
        if times == 0:
            raise EeioError(f"{self.path}: no column {column!r}; it has {', '.join(self.columns)}")
        if times > 1:
            raise EeioError(
                f"{self.path}: the header has the column {column!r} {times} times: give each "
                "another name"
            )
        return self.columns.index(column)

    def number(self, cell: str) -> float:
        """NaN for a cell that is empty, no number, or an instrument's sign of none (SCPI's 9.9E37
        for overload, 9.91E37 for no number: more than any number may be). Raises EeioError for a
        number with a comma that may separate thousands."""
        if len(cell) > MOST_DIGITS:
            return math.nan
        if not self.decimal_comma and _WITH_COMMAS.fullmatch(cell.strip()):
            why = self.ambiguous or f"the comma of {cell.strip():.60} is not known to be decimal"
            raise EeioError(f"{self.path}: {why}: write numbers with a point and no comma")
        try:
            value = float(cell.replace(",", ".") if self.decimal_comma else cell)
        except ValueError:
            return math.nan
        if FIGURE.contains(value):
            return value
        return math.nan

    def numbers(self, column: str) -> list[float]:
        """A complete column; NaN for missing values."""
        place = self.place(column)
        return [self.number(cells[place]) for _, cells in self.rows]


def read_table(path: Path) -> ImportedTable:
    """Raises EeioError for a file that is missing, empty, or has a row of another width."""
    try:
        text = inputs.read_text(path, inputs.TABLE_BYTES)
        inputs.check_lines(text, inputs.CELL_CHARACTERS)
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    except (LimitError, ValueError) as error:  # a path with a NUL
        raise EeioError(f"{path}: {error}") from error
    lines = text.splitlines()
    if not lines or not lines[0].strip():
        raise EeioError(f"{path}: empty")
    delimiter = max(";\t,", key=lines[0].count)
    reader = csv.reader(lines, delimiter=delimiter)
    columns = tuple(cell.strip() for cell in next(reader))
    rows = []
    while (cells := _row(reader, path)) is not None:
        if not cells:
            continue
        if len(cells) != len(columns):
            raise EeioError(
                f"{path}:{reader.line_num}: {len(cells)} cells, but the header has {len(columns)}"
            )
        rows.append((reader.line_num, cells))
    if not rows:
        raise EeioError(f"{path}: a header and no row")
    cells = [cell.strip() for _, row in rows[:DECIDING_ROWS] for cell in row]
    try:
        return ImportedTable(path, columns, rows, has_decimal_comma(cells), "")
    except PowerError as error:
        # It matters if a column that the map names has such a number.
        return ImportedTable(path, columns, rows, False, str(error))


def _row(reader: Iterator[list[str]], path: Path) -> list[str] | None:
    """The next row, None after the last one. Raises EeioError."""
    try:
        return next(reader, None)
    except csv.Error as error:
        # A quote that is not closed runs on over the lines.
        line = getattr(reader, "line_num", 0)
        raise EeioError(f"{path}:{line}: no row of a table: {error}") from error


@dataclass(frozen=True)
class Term:
    """scale x (column - minus) / divide."""

    column: str
    minus: float = 0.0
    scale: float = 1.0
    divide: float = 1.0


@dataclass(frozen=True)
class Watts:
    """How columns become watts: the product of its terms, such as volts and amperes."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, body: Sequence[Mapping[str, object]], folder: Path) -> "Watts":
        """From a map; `minus_median_of: FILE` takes the median of that column in that file."""
        terms = []
        for item in body:
            column = str(item["column"])
            minus = float(str(item.get("minus", 0.0)))
            if "minus_median_of" in item:
                table = read_table(folder / str(item["minus_median_of"]))
                values = [v for v in table.numbers(column) if not math.isnan(v)]
                if not values:
                    raise EeioError(f"{table.path}: column {column!r} has no number")
                minus = statistics.median(values)
            scale = float(str(item.get("scale", 1.0)))
            terms.append(Term(column, minus, scale, float(str(item.get("divide", 1.0)))))
        return cls(tuple(terms))

    def of_rows(self, table: ImportedTable) -> Iterator[tuple[int, list[str], float]]:
        """(line, cells, W) of each row; NaN where a term is missing."""
        places = [(term, table.place(term.column)) for term in self.terms]
        for line, cells in table.rows:
            watts = 1.0
            for term, place in places:
                watts *= term.scale * (table.number(cells[place]) - term.minus) / term.divide
            yield line, cells, watts

    def resolution_w(self, table: ImportedTable) -> float:
        """The resolution of the powers, by the steps of the columns."""
        factors, digits, scale = [], [], CUT_OFF_STEPS
        for term in self.terms:
            place = table.place(term.column)
            values, digit = [], math.inf
            for _, cells in table.rows:
                value = table.number(cells[place])
                if value == value:
                    values.append(value)
                    digit = min(digit, last_digit(cells[place].strip()))
            factors.append(values)
            digits.append(digit)
            scale *= abs(term.scale / term.divide)
        return scale * product_step_w(factors, digits)
