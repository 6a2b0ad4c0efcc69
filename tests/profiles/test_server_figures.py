"""What eeio-postgresql and eeio-mariadb make of what their clients print; no server is run."""

import importlib.util
import os
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

from eeio.measure.profiles import complete
from tests.profiles.harness import PROFILES


def _module(tool: str, name: str) -> ModuleType:
    path = complete.file(PROFILES / f"eeio-{tool}-1.0.0", f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = _module("mariadb", "server")
    monkeypatch.setitem(sys.modules, "server", module)
    return module


def test_percentiles_are_by_nearest_rank(server: ModuleType) -> None:
    counted = {0.1: 1, 0.001: 950, 0.002: 40, 0.003: 9}
    assert server.latencies(counted) == {
        "latency_p50_s": 0.001, "latency_p95_s": 0.001, "latency_p99_s": 0.002,
        "latency_p999_s": 0.003, "latency_max_s": 0.1,
    }  # fmt: skip
    assert set(server.latencies({0.5: 1}).values()) == {0.5}


def test_root_without_another_user_is_rejected(
    server: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(
        server.RejectedError, match="refuses root, and there is no user no-a or no-b"
    ):
        server.Server(tmp_path, "/bin/true", ("no-a", "no-b"), signal.SIGKILL)


def test_a_user_without_a_name_is_rejected(
    server: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `podman run --user 1234567`."""
    monkeypatch.setattr(os, "geteuid", lambda: 1234567)
    with pytest.raises(server.RejectedError, match="user 1234567 has no name here"):
        server.Server(tmp_path, "/bin/true", ("nobody",), signal.SIGKILL)


SYSBENCH = """
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       1.984 |****************************************  98
       8.277 |                                         2

    transactions:                        100    (50.25 per sec.)
    ignored errors:                      3      (1.51 per sec.)

Latency (ms):
         max:                                    8.25
"""


def test_what_sysbench_reports(server: ModuleType) -> None:
    workload = _module("mariadb", "workload")
    assert workload.figures(SYSBENCH, 4.0) == {
        "operations": 100, "operations_per_s": 25.0, "returned_operations_per_s": 50.25,
        "failed_operations": 3, "latency_p50_s": 0.001984, "latency_p95_s": 0.001984,
        # No percentile is above the longest, though a step's middle may be.
        "latency_p99_s": 0.00825, "latency_p999_s": 0.00825, "latency_max_s": 0.00825,
    }  # fmt: skip
    for text, message in (
        (SYSBENCH.replace("98\n", "97\n"), "histogram has not its 100 transactions"),
        (SYSBENCH.partition("    ignored")[0], "sysbench does not tell"),
        ("", "sysbench does not tell"),
    ):
        with pytest.raises(server.RejectedError, match=message):
            workload.figures(text, 4.0)


def test_what_pgbench_reports(server: ModuleType) -> None:
    workload = _module("postgresql", "workload")
    for message in ("without initial connection time", "excluding connections establishing"):
        text = f"tps = 9.5 (including connections establishing)\ntps = 10.5 ({message})\n"
        assert workload.told(text, workload.TPS) == 10.5
    with pytest.raises(server.RejectedError, match="pgbench does not tell"):
        workload.told("tps = 9.5 (including connections establishing)", workload.TPS)
