"""What the full path costs: token check, guard, split and access log, against the engine alone.

    python benchmarks/path.py            about four minutes
    python benchmarks/path.py --quick    under 50 s

Measured in one run, interleaved: ONNX Runtime in process (the model alone), Triton addressed directly, and the full
path through the gateway with traffic split 90/10 between two revisions. Figures that mean something are the ratios
of neighbours in time; the last line is one JSON object with them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import load

ROOT = Path(__file__).parents[1]
CONNECTIONS = (1, 8, 32, 100)


@dataclass(frozen=True, slots=True)
class Figures:
    """One measurement of one target."""

    rps: float
    p50_ms: float
    p99_ms: float
    failed: int


Target = Callable[[int, float], Figures]


def main() -> None:
    """Start a platform, measure, print, stop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round")
    quick = parser.parse_args().quick
    rounds, seconds = (1, 1.5) if quick else (5, 4.0)
    with tempfile.TemporaryDirectory(prefix="taxiway-bench-") as folder:
        state = str(Path(folder) / "state")
        try:
            targets = prepare(state)
            table = measure(targets, rounds, seconds)
        finally:
            taxiway("down", "--state", state)
    report(table)


def prepare(state: str) -> dict[str, Target]:
    """A platform with two revisions of the example; the three targets."""
    taxiway("up", "--state", state)
    taxiway("ship", str(ROOT / "examples/risk/notebook.ipynb"), "--state", state)
    taxiway("ship", str(ROOT / "examples/risk/notebook_v2.ipynb"), "--name", "risk", "--state", state)
    taxiway("traffic", "risk", "1=90", "2=10", "--state", state)
    request = json.loads(taxiway("request", "risk", "--json", "--state", state))
    port = json.loads((Path(state) / "run/engines/risk@1.json").read_text())["ports"]["http"]
    host, _, gateway = request["url"].split("/")[2].partition(":")
    model = Path(state) / "catalog/risk/1/repository/risk/1/model.onnx"
    return {
        "onnxruntime": in_process(model, request["body"]),
        "triton": over_http(host, port, request["body"], None),
        "full path": over_http(host, int(gateway), request["body"], request["token"]),
    }


def over_http(host: str, port: int, body: dict[str, Any], token: str | None) -> Target:
    """The example request, on `connections` keep-alive connections."""
    data = json.dumps(body).encode()
    head = ["POST /v2/models/risk/infer HTTP/1.1", f"Host: {host}", f"Content-Length: {len(data)}"]
    head += ["Content-Type: application/json"] + ([f"Authorization: Bearer {token}"] if token else [])
    request = "\r\n".join(head).encode() + b"\r\n\r\n" + data

    def target(connections: int, seconds: float) -> Figures:
        result = load.run(host, port, request, connections, seconds)
        return Figures(result.rps, result.quantile_ms(0.5), result.quantile_ms(0.99), result.failed)

    return target


def in_process(model: Path, body: dict[str, Any]) -> Target:
    """The same row straight to ONNX Runtime, from as many threads as there would be connections."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feed = {i["name"]: np.array(i["data"], np.float32).reshape(i["shape"]) for i in body["inputs"]}

    def target(connections: int, seconds: float) -> Figures:
        result = load.Result(seconds=seconds)
        end = time.perf_counter() + seconds

        def ask() -> None:
            while (began := time.perf_counter()) < end:
                session.run(None, feed)
                result.latencies.append(time.perf_counter() - began)

        threads = [threading.Thread(target=ask) for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return Figures(result.rps, result.quantile_ms(0.5), result.quantile_ms(0.99), 0)

    return target


def measure(targets: dict[str, Target], rounds: int, seconds: float) -> dict[tuple[str, int], list[Figures]]:
    """Every target at every number of connections, target after target, round after round."""
    table: dict[tuple[str, int], list[Figures]] = {}
    for name, target in targets.items():
        print(f"warming {name}", file=sys.stderr)
        target(8, 0.5)
    for number in range(rounds):
        for connections in CONNECTIONS:
            for name, target in targets.items():
                print(f"round {number + 1}/{rounds}: {name}, {connections} connections", file=sys.stderr)
                table.setdefault((name, connections), []).append(target(connections, seconds))
    return table


def report(table: dict[tuple[str, int], list[Figures]]) -> None:
    """The table for a person, the last line for a script."""
    print(f"{'target':12} {'conns':>5} {'req/s':>8} {'p50 ms':>8} {'p99 ms':>8}   full path / triton (min-max)")
    for (name, connections), runs in sorted(table.items(), key=lambda i: (i[0][1], i[0][0])):
        rps, p50, p99 = (statistics.median(getattr(r, k) for r in runs) for k in ("rps", "p50_ms", "p99_ms"))
        spread = ""
        if name == "full path":
            each = ratios(table, connections)
            spread = f"   {statistics.median(each):.2f} ({min(each):.2f}-{max(each):.2f})"
        print(f"{name:12} {connections:5} {rps:8.0f} {p50:8.2f} {p99:8.2f}{spread}")
    figures = {f"ratio_c{c}": round(statistics.median(ratios(table, c)), 3) for c in CONNECTIONS}
    added = [f.p50_ms - t.p50_ms for f, t in zip(table["full path", 1], table["triton", 1], strict=True)]
    figures["added_p50_ms_c1"] = round(statistics.median(added), 3)
    figures["rps_c100"] = round(statistics.median(f.rps for f in table["full path", 100]))
    figures["failed"] = sum(f.failed for runs in table.values() for f in runs)
    print(json.dumps(figures))


def ratios(table: dict[tuple[str, int], list[Figures]], connections: int) -> list[float]:
    """Full path over Triton alone, round by round."""
    pairs = zip(table["full path", connections], table["triton", connections], strict=True)
    return [full.rps / triton.rps for full, triton in pairs]


def taxiway(*words: str) -> str:
    """One command; its answer."""
    done = subprocess.run(
        [sys.executable, "-m", "taxiway.entry.cli", *words], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
