"""Each benchmark has a quick form that ends with its figures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_cost_of_the_path_is_measured_without_a_failed_request(engine_home):
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "path.py"), "--quick"], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert {"ratio_c1", "ratio_c32", "ratio_c100", "added_p50_ms_c1", "rps_c100"} < set(figures)
    assert figures["failed"] == 0
    assert all(value > 0 for name, value in figures.items() if name != "failed")


def test_checking_notebooks_is_measured():
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "check.py"), "--quick"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert set(figures) == {"cells200_s", "notebooks_per_s"}
    assert all(value > 0 for value in figures.values())
