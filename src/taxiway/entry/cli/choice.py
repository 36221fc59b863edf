"""What a person has said about a notebook: flags over taxiway.yaml over the defaults."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from taxiway.app.build import interpreter
from taxiway.app.build.interpreter import Interpreter
from taxiway.app.config import read
from taxiway.app.config.model import Config


@dataclass(frozen=True, slots=True)
class Choice:
    name: str | None
    model: str | None
    python: Interpreter
    config: Config


def add_choice(parser: argparse.ArgumentParser) -> None:
    """The flags that taxiway.yaml has keys for."""
    parser.add_argument("--name", metavar="MODEL", help="the model's name (default: from the file or its folder)")
    parser.add_argument("--model", metavar="NAME@CELL", help="which fitted model, when the notebook has more than one")
    text = "the Python (or virtual environment) that the notebook runs in"
    parser.add_argument("--python", metavar="PATH", help=text)
    parser.add_argument("--kernel", metavar="NAME", help="the same by the name of a Jupyter kernel")
    text = "the configuration (default: the taxiway.yaml beside the notebook)"
    parser.add_argument("--config", metavar="FILE", type=Path, help=text)


def choice(args: argparse.Namespace) -> Choice:
    """What was chosen; raises `Refused` for a wrong configuration, or an environment that lacks something."""
    path = args.config or read.find(args.path)
    config = read.read(path) if path else Config()
    python, kernel = args.python, args.kernel
    if python is None and kernel is None:
        kernel = config.kernel
        python = str((path.parent / config.python).absolute()) if path and config.python else None
    chosen = interpreter.choose(args.path, python, kernel)
    return Choice(args.name or config.model, args.model or config.choose, chosen, config)
