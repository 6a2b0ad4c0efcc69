"""Makes number_texts.json: 1,000 numbers and their texts, by decimal arithmetic.

python -m tests.data.number_texts >tests/data/number_texts.json
"""

import json
import random
from decimal import ROUND_HALF_EVEN, Decimal

SEED = 20
COUNT = 1000
SPECIAL = (
    0.0, 1.0, -1.0, 9.9999999, 0.00001234, 99.95, 999.5, 1234.5, 1235.5, 0.5, 2.5, 1.125, 1.375,
    112.5, 113.5, 2.5e-3, 1e-9, 1e12, 0.09999, 0.99995, 12345.0, 99999.0, 100000.0,
)  # fmt: skip


def text_of(value: float, digits: int, keep_zeros: bool) -> str:
    """`value` rounded to so many significant digits, half to even, without an exponent."""
    exact = Decimal(value)
    if not exact:
        return "0"
    place = exact.adjusted() - digits + 1
    rounded = exact.quantize(Decimal(1).scaleb(place), ROUND_HALF_EVEN)
    if rounded.adjusted() > exact.adjusted() and place < 0:
        rounded = rounded.quantize(Decimal(1).scaleb(place + 1))
    if place > 0:
        rounded = exact.quantize(Decimal(1), ROUND_HALF_EVEN)
    text = f"{rounded:f}"
    return text.rstrip("0").rstrip(".") if "." in text and not keep_zeros else text


def main() -> None:
    source = random.Random(SEED)
    values = list(SPECIAL)
    while len(values) < COUNT:
        size = float(f"{10 ** source.uniform(-8, 12):.5g}")
        values.append(source.choice((1, -1)) * size)
    rows = [
        {
            "value": value,
            "table": text_of(value, 4, False),
            "page": text_of(float(f"{value:.5g}"), 3, True),
            "pts": text_of(value, 6, True),
        }
        for value in values
    ]
    print("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")


if __name__ == "__main__":
    main()
