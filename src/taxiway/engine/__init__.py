"""Triton: put it on this machine, run it, talk to it.

    install.py   makes the engine's own environment (its Python, packages, server binary, backends)
    home.py      where that environment is and whether it is the one this version needs
    command.py   the command line of one server                                         (pure)
    keeper.py    keeps one server for one revision: start, watch, replace, take over, stop; told by spec.py,
                 reports in status.py, acts through server.py and proc.py
    client.py    asks a server, or the gateway in front of it, for an inference
    backends/    what runs inside the server; it shares no code with the rest of the package

Nothing outside this room knows where the server binary came from. What a revision is, where traffic goes
and who may call are none of this room's business. Kept light: a keeper runs for every revision, so nothing
here imports numpy or a client library.
"""
