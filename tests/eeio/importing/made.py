"""A folder of results as somebody could have it, small enough to check by hand."""

from pathlib import Path
from typing import Any

import yaml

FACTORS = "op;kb;cache;rep"

MAP: dict[str, Any] = {
    "title": "Made by hand",
    "words": {
        "operation": {
            "write": {"operation": "write", "spatiality": "sequential"},
            "randread": {"operation": "read", "spatiality": "random"},
            "read": {"operation": "read", "spatiality": "sequential"},
        },
        "size": {"32": {"request_size": "32k"}, "4096": {"request_size": "4m"}},
        "cache": {"0": {"buffer": "off"}, "1": {"buffer": "on"}},
    },
    "campaigns": [
        {
            "name": "board",
            "machine": {
                "hostname": "board",
                "architecture": "armv7l",
                "kernel": "6.1",
                "device": "sda",
                "device_rotational": False,
            },
            "tool": "fio",
            "factors": {"level": "filesystem"},
            "runs": {
                "table": "runs.csv",
                "columns": {
                    "operation": "op",
                    "size": "kb",
                    "cache": "cache",
                    "repetition": "rep",
                },
                "values": {
                    "bandwidth_bytes_per_s": "rate",
                    "bytes_moved": "bytes",
                    "duration_s": "s",
                },
            },
            "power": [
                {
                    "domain": "system",
                    "meter": "scope",
                    "table": "power.csv",
                    "watts": [{"column": "v", "scale": 10}, {"column": "a", "divide": 2}],
                    "period_s": 0.5,
                    "lag_s": 0,
                    "averages_s": 0.5,
                    "idle": {"operation": "idle"},
                },
                {
                    "domain": "device",
                    "meter": "sensor",
                    "table": "power.csv",
                    "watts": [{"column": "d", "minus_median_of": "zero.csv", "scale": 5}],
                    "period_s": 0.5,
                    "lag_s": 0,
                    "averages_s": 0.5,
                    "accuracy": 0.1,
                },
            ],
        }
    ],
}

RUNS = """\
op;kb;cache;rep;rate;bytes;s
write;32;0;1;1000000;20000000;20.0
write;32;0;2;1200000;24000000;20.0
"""
POWER = (
    "op;kb;cache;rep;v;a;d\n"
    + "".join(
        f"write;32;0;1;1,0;2,0;2,{600 + k}\nwrite;32;0;1;1,0;3,0;2,{600 - k}\n" for k in range(10)
    )
    + "write;32;0;2;2,0;2,0;9,9E+37\n" * 20
    + "idle;0;0;1;0,5;1,0;2,5\n"
)
ZERO = "d\n2.4\n2.5\n2.6\n"


def write(folder: Path, body: dict[str, Any] = MAP, **files: str) -> Path:
    """The folder's files and its map; `runs="..."` puts other text into runs.csv."""
    texts = {"runs": RUNS, "power": POWER, "zero": ZERO, **files}
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    path = folder / "map.yaml"
    path.write_text(yaml.safe_dump(body), encoding="utf-8")
    return path
