"""Make the engine's own environment: a Python below 3.13, numpy below 2, the server, our backends.

The control plane's packages cannot serve: the server's stub needs an older numpy than they do. What this
may not do: touch the environment it runs from.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from taxiway.core import digest
from taxiway.core.errors import Refused
from taxiway.engine import home as homes
from taxiway.engine.alone import alone, run
from taxiway.engine.home import EngineHome, Stamp
from taxiway.engine.python import Interpreter, find

Progress = Callable[[str], None]

_SPACE: Final = 700_000_000  # bytes: the server 150 MB, packages 170 MB, and both once more while unpacking
_GLIBC: Final = (2, 35)
PIP: Final = ("--disable-pip-version-check", "--no-input", "--only-binary=:all:", "--no-deps", "--quiet")


def install(home: Path, *, python: Path | None = None, progress: Progress) -> EngineHome:
    """Make or refresh the environment in `home` and return it; instant when nothing has changed.

    `python` names the interpreter to use, else one is looked for. Interrupted, it starts again; called
    twice at once, the second waits for the first. Raises `Refused` with what is missing and how to get it.
    """
    _check_machine()
    home.mkdir(parents=True, exist_ok=True)
    with alone(home / "lock", "the engine", progress):
        stamp = homes.read_stamp(home)
        if stamp and not homes.broken(home, stamp) and _same_python(stamp, python):
            if homes.stale(home, stamp):
                progress("refreshing the engine's backends")
                _put_in_force(home, stamp, stamp.environment, _interpreter(stamp))
            return homes.locate(home)
        interpreter = find(python)
        environment = _environment(home, interpreter, progress)
        _put_in_force(home, stamp, environment, interpreter)
        progress("the engine is installed")
        return homes.locate(home)


def _check_machine() -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Refused(
            f"The engine runs on Linux x86_64; this is {sys.platform} {platform.machine()}. "
            "Use a Linux machine, container or virtual machine of that kind."
        )
    name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "another C library").partition(" ")
    parts = version.split(".")
    if name != "glibc" or tuple(int(p) for p in parts[:2]) < _GLIBC:
        raise Refused(
            f"The engine needs glibc 2.35 or newer; this system has {name} {version}".rstrip() + ". "
            "Debian 12, Ubuntu 22.04, Fedora 36, RHEL 10 and everything later will do."
        )


def _same_python(stamp: Stamp, python: Path | None) -> bool:
    return python is None or find(python).executable == Path(stamp.executable)


def _interpreter(stamp: Stamp) -> Interpreter:
    major, minor, micro = (int(part) for part in stamp.python.split("."))
    return Interpreter(Path(stamp.executable), (major, minor, micro), Path(stamp.library))


def _environment(home: Path, interpreter: Interpreter, progress: Progress) -> str:
    """Build the environment for `interpreter`; the folder's name. One left unfinished is begun anew."""
    free = shutil.disk_usage(home).free
    if free < _SPACE:
        raise Refused(
            f"The engine needs {_SPACE // 1_000_000} MB of disk; {home} has {free // 1_000_000} MB free. "
            "Make room, or set TAXIWAY_ENGINE_HOME to a folder on another disk."
        )
    if importlib.util.find_spec("pip") is None:
        raise Refused(f"{sys.executable} has no pip. Run `{sys.executable} -m ensurepip` (or add pip to it) first.")
    made_from = [homes.packages_digest(), str(interpreter.executable), list(interpreter.version)]
    name = f"env-{digest.short(digest.of_json(made_from))}"
    folder = home / name
    # A virtual environment knows its own path, so it is built where it will stay: current.json comes last.
    shutil.rmtree(folder, ignore_errors=True)
    progress(f"making the engine's environment with Python {interpreter.series} ({interpreter.executable})")
    venv = folder / "venv"
    run([str(interpreter.executable), "-m", "venv", "--without-pip", str(venv)], "make a virtual environment")
    progress("installing numpy and ONNX Runtime for the engine")
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin/python"), "install", *PIP]
    run([*pip, "-r", str(homes.REQUIREMENTS)], "install the engine's packages")
    progress("installing the Triton server (145 MB)")
    run([*pip, "--target", str(folder / "triton"), homes.WHEEL], "install the Triton server")
    run([str(venv / "bin/python3"), "-I", "-c", "import numpy, onnxruntime"], "import the engine's packages")
    return name


def _put_in_force(home: Path, before: Stamp | None, environment: str, interpreter: Interpreter) -> None:
    sources = homes.sources_digest()
    backends = f"{environment}/backends-{digest.short(sources)}"
    _lay_out(home / environment, home / backends, interpreter.series)
    stamp = Stamp(
        packages=homes.packages_digest(),
        sources=sources,
        python=".".join(map(str, interpreter.version)),
        executable=str(interpreter.executable),
        library=str(interpreter.library),
        environment=environment,
        backends=backends,
    )
    homes.write_stamp(home, stamp)
    _sweep(home, {s for s in (stamp, before) if s})


def _lay_out(environment: Path, backends: Path, series: str) -> None:
    """Fill the folder that the server loads backends from."""
    aside = backends.with_name(backends.name + ".new")
    shutil.rmtree(aside, ignore_errors=True)
    (aside / "python").mkdir(parents=True)
    server = environment / "triton/pytriton/tritonserver"
    # Copies: the server refuses a library that a link leads out of this folder.
    for name in ("libtriton_python.so", "triton_python_backend_utils.py"):
        shutil.copyfile(server / "backends/python" / name, aside / "python" / name)
    stub = aside / "python/triton_python_backend_stub"
    shutil.copyfile(server / "python_backend_stubs" / series / stub.name, stub)
    stub.chmod(0o755)
    for path in homes.backend_files():
        target = aside / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(homes.SOURCES / path, target)
    shutil.rmtree(backends, ignore_errors=True)
    aside.rename(backends)


def _sweep(home: Path, keep: set[Stamp]) -> None:
    """Remove what neither the environment in force nor the one before it needs: servers of both may be running."""
    for folder in home.glob("env-*"):
        if folder.name not in {stamp.environment for stamp in keep}:
            shutil.rmtree(folder, ignore_errors=True)
    for folder in home.glob("env-*/backends-*"):
        if str(folder.relative_to(home)) not in {stamp.backends for stamp in keep}:
            shutil.rmtree(folder, ignore_errors=True)
