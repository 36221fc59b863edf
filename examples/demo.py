"""From a real notebook to a live, governed endpoint, in one command (`make demo`)."""

import argparse
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def taxiway(*words: str) -> subprocess.CompletedProcess[str]:
    """Run one command of the product; its progress goes to the terminal, its answer comes back."""
    done = subprocess.run(
        [sys.executable, "-m", "taxiway.entry.cli", *words], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        print(done.stdout, end="")
        sys.exit(done.returncode)
    return done


def main() -> None:
    """Start the platform, ship the example, ask it once, say how to go on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", default=".taxiway", help="the platform's state folder")
    state = ["--state", parser.parse_args().state]
    began = time.monotonic()
    print("== starting the platform", file=sys.stderr)
    where = json.loads(taxiway("up", "--json", *state).stdout)
    print("== shipping examples/risk/notebook.ipynb", file=sys.stderr)
    shipped = json.loads(taxiway("ship", str(HERE / "risk/notebook.ipynb"), "--json", *state).stdout)
    line = taxiway("request", "risk", *state).stdout.strip()
    print("== asking it, with the very line below", file=sys.stderr)
    answer = (
        ask(line)
        if shutil.which("curl")
        else ask_without_curl(json.loads(taxiway("request", "risk", "--json", *state).stdout))
    )
    if '"outputs"' not in answer:
        print(f"the endpoint did not answer: {answer}", file=sys.stderr)
        sys.exit(1)
    show(where, shipped, line, answer.strip(), state[1], time.monotonic() - began)


def ask(line: str) -> str:
    """What the shell says to the line."""
    asked = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    return asked.stdout + asked.stderr


def ask_without_curl(request: dict[str, Any]) -> str:
    """The same request from Python."""
    call = urllib.request.Request(
        request["url"],
        json.dumps(request["body"]).encode(),
        {"Authorization": f"Bearer {request['token']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(call, timeout=10) as answer:
        return str(answer.read().decode())


def show(where: dict[str, str], shipped: dict[str, Any], line: str, answer: str, state: str, seconds: float) -> None:
    """What a person needs next."""
    parity = shipped["parity"]
    suffix = "" if state == ".taxiway" else f" STATE={state}"
    print(f"""
model      {shipped["model"]}@{shipped["revision"]}
digest     {shipped["digest"]}
parity     {parity["rows"]} rows: {parity["label_flips"]} labels differ, largest error {parity["max_abs_error"]:.2g}
proved     {shipped["golden_samples"]} golden samples, straight at the engine and through the gateway

endpoint   {where["url"]}/v2/models/{shipped["model"]}/infer   (REST; gRPC on {where["grpc"]})
status     {where["console"]}

ask it     {line}

answer     {answer}

took {seconds:.1f} s. Stop it: make stop{suffix}""")


if __name__ == "__main__":
    main()
