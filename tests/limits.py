"""Time limits for tests. A slow or busy machine gets longer ones."""

import os
import subprocess
import sys
import time

TEST_S = 240.0
"""Limit of a test without a `timeout` marker, on the machine that REFERENCE_S was measured on."""
REFERENCE_S = 0.25
"""What `_sample` took on two idle virtual cores in 2026."""
_VARIABLE = "EEIO_TEST_SLOWNESS"


def measure_machine() -> None:
    """Once per session: workers inherit the environment of the process that starts them."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = f"{max(1.0, _sample_s() / REFERENCE_S):.2f}"


def scaled(seconds: float) -> float:
    """A limit in s for this machine, at least `seconds`."""
    return seconds * float(os.environ.get(_VARIABLE, "1"))


def _sample_s() -> float:
    begun_s = time.monotonic()
    total = 0
    for number in range(5_000_000):
        total += number * number
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.monotonic() - begun_s
