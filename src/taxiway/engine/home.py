"""Where the engine's environment is, and whether it is the one this version of Taxiway needs.

    <home>/current.json            written last: which environment is in force, and from what it was made
    <home>/env-<digest>/venv       the stub's Python and packages
    <home>/env-<digest>/triton     the unpacked server
    <home>/env-<digest>/backends-<digest>   what the server loads models with

A folder that `current.json` does not name is unfinished or superseded. Nothing is changed in place, so a
running server never loses files to an upgrade.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from taxiway.core import digest
from taxiway.core.errors import Refused

WHEEL: Final = "nvidia-pytriton==0.7.0"
REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
SOURCES: Final = Path(__file__).with_name("backends")
_LAYOUT: Final = 1


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an environment was made from; `environment` and `backends` are folders relative to the home."""

    packages: str
    sources: str
    python: str
    executable: str
    library: str
    environment: str
    backends: str


@dataclass(frozen=True, slots=True)
class EngineHome:
    """A finished environment. `library` is the folder that holds the stub's libpython."""

    root: Path
    environment: Path
    backends: Path
    library: Path
    python: str

    @property
    def server(self) -> Path:
        """The tritonserver binary."""
        return self.environment / "triton/pytriton/tritonserver/bin/tritonserver"

    @property
    def bundled(self) -> Path:
        """The folder of shared libraries that came with the server."""
        return self.environment / "triton/nvidia_pytriton.libs"

    @property
    def scripts(self) -> Path:
        """The folder whose `python3` the stub takes its packages from."""
        return self.environment / "venv/bin"


def default_home() -> Path:
    """`TAXIWAY_ENGINE_HOME`, else `engine` within the running Python's own environment."""
    return Path(os.environ.get("TAXIWAY_ENGINE_HOME") or Path(sys.prefix) / "engine")


def locate(home: Path) -> EngineHome:
    """The finished environment in `home`; raises `Refused` when there is none or it is not this version's."""
    stamp = read_stamp(home)
    reason = "there is none yet" if stamp is None else stale(home, stamp)
    if stamp is None or reason:
        raise Refused(f"The engine in {home} cannot be used: {reason}. Run `taxiway engine install`.")
    return opened(home, stamp)


def opened(home: Path, stamp: Stamp) -> EngineHome:
    """The environment that `stamp` describes, unchecked."""
    return EngineHome(
        root=home,
        environment=home / stamp.environment,
        backends=home / stamp.backends,
        library=Path(stamp.library).parent,
        python=stamp.python,
    )


def stale(home: Path, stamp: Stamp) -> str | None:
    """Why the stamped environment cannot be used by this version; None when it can."""
    return broken(home, stamp) or (
        "its backends were made by another version" if stamp.sources != sources_digest() else None
    )


def broken(home: Path, stamp: Stamp) -> str | None:
    """Why the environment (its backends aside) cannot be used; None when it can."""
    if stamp.packages != packages_digest():
        return "its packages were installed by another version"
    engine = opened(home, stamp)
    needed = (engine.server, engine.scripts / "python3", Path(stamp.library), engine.backends)
    missing = [str(path) for path in needed if not path.exists()]
    return f"{', '.join(missing)} has gone" if missing else None


def read_stamp(home: Path) -> Stamp | None:
    """The stamp in `home`; None when there is none that can be read."""
    try:
        return Stamp(**json.loads((home / "current.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_stamp(home: Path, stamp: Stamp) -> None:
    """Put `stamp` in force."""
    aside = home / "current.json.new"
    aside.write_text(json.dumps(asdict(stamp), indent=2) + "\n")
    aside.replace(home / "current.json")


def packages_digest() -> str:
    """Digest of all that decides which packages are installed."""
    return digest.of_json([_LAYOUT, WHEEL, REQUIREMENTS.read_text()])


def sources_digest() -> str:
    """Digest of the backends' sources."""
    return digest.of_json({str(path): (SOURCES / path).read_text() for path in backend_files()})


def backend_files() -> list[Path]:
    """Sources to be copied, relative to `SOURCES`.

    The `__init__.py` files that make `backends/<name>` importable here stay behind: there they would hide
    the vendor's package of the same name.
    """
    found = (path.relative_to(SOURCES) for path in SOURCES.rglob("*.py"))
    return sorted(path for path in found if len(path.parts) > 2 or path.name != "__init__.py")
