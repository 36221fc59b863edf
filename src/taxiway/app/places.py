"""Where everything of one platform lives: one state folder, and nothing outside it but short socket paths."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from taxiway.core import digest
from taxiway.core.errors import Refused
from taxiway.core.revision import Revision

# A Unix socket's path holds 107 bytes on Linux; names of ours are at most 16.
_SOCKET_FOLDER_BYTES: Final = 90


@dataclass(frozen=True, slots=True)
class Places:
    """The state folder (absolute) and what is where in it."""

    state: Path

    @property
    def settings(self) -> Path:
        return self.state / "platform.json"

    @property
    def journal(self) -> Path:
        return self.state / "control.db"

    @property
    def catalog(self) -> Path:
        return self.state / "catalog"

    @property
    def work(self) -> Path:
        return self.state / "work"

    @property
    def proofs(self) -> Path:
        """What the serving engine answered to each revision's rows."""
        return self.state / "proofs"

    @property
    def keys(self) -> Path:
        return self.state / "keys"

    @property
    def api_token(self) -> Path:
        return self.keys / "api-token"

    @property
    def gateway(self) -> Path:
        return self.state / "gateway"

    @property
    def access_log(self) -> Path:
        return self.log / "access.log"

    @property
    def log(self) -> Path:
        return self.state / "log"

    @property
    def run(self) -> Path:
        return self.state / "run"

    @property
    def engines(self) -> Path:
        return self.run / "engines"

    def engine_status(self, revision: Revision) -> Path:
        return self.engines / f"{revision.model}@{revision.number}.json"

    @property
    def sockets(self) -> Path:
        """`run`, or a short folder of this user's when the state folder's path is too long for a socket."""
        if len(os.fsencode(self.run)) <= _SOCKET_FOLDER_BYTES:
            return self.run
        name = f"taxiway-{os.getuid()}-{digest.short(digest.of_bytes(os.fsencode(self.state)))}"
        return Path(tempfile.gettempdir()) / name

    @property
    def gateway_admin(self) -> Path:
        return self.sockets / "gateway.sock"

    @property
    def supervisor_socket(self) -> Path:
        return self.sockets / "supervisor.sock"

    def make(self) -> None:
        """Create the folders, readable by this user alone; raises `Refused`."""
        folders = [
            self.state,
            self.catalog,
            self.work,
            self.keys,
            self.gateway,
            self.log,
            self.run,
            self.engines,
            self.sockets,
        ]
        for folder in folders:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise Refused(
                    f"the folder {folder} cannot be made: {error.strerror}; choose another --state"
                ) from error
        if self.sockets.stat().st_uid != os.getuid():
            raise Refused(f"{self.sockets} belongs to another user; choose a shorter --state")
