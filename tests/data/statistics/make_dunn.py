"""Writes dunn.json: 200 tied, unbalanced cases and what scikit-posthocs says of them.

pip install scikit-posthocs   # in an environment of its own
python make_dunn.py
"""

import json
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scikit_posthocs

# Our word for each adjustment, and that of scikit-posthocs.
ADJUSTMENTS = {
    "none": None,
    "holm": "holm",
    "bonferroni": "bonferroni",
    "benjamini-hochberg": "fdr_bh",
}
PACKAGES = ("scikit-posthocs", "statsmodels", "scipy", "numpy", "pandas")


def main() -> None:
    generator = np.random.default_rng(20180323)
    cases = []
    while len(cases) < 200:
        sizes = generator.integers(2, 12, size=generator.integers(3, 6))
        # Whole numbers of a small range tie often; the shift makes some groups differ.
        span = int(generator.choice([3, 8, 30, 1000]))
        groups = [
            (generator.integers(0, span, size=n) + int(generator.integers(0, span))).tolist()
            for n in sizes
        ]
        if len({value for group in groups for value in group}) == 1:
            continue
        answers = {}
        for ours, theirs in ADJUSTMENTS.items():
            table = scikit_posthocs.posthoc_dunn(groups, p_adjust=theirs).to_numpy()
            answers[ours] = table[np.triu_indices(len(groups), 1)].tolist()
        cases.append({"groups": groups, "p": answers})
    versions = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    body = f'{{"versions":{json.dumps(versions)},\n"cases":[\n{lines}\n]}}\n'
    (Path(__file__).parent / "dunn.json").write_text(body, encoding="utf-8")


if __name__ == "__main__":
    main()
