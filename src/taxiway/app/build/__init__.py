"""From a notebook to a proved model in a folder.

`builder.py` finds or makes a build; the notebook runs in a process of its own (`process.py`), under a guard that ends
whatever it has started (`guard.py`), while `inputs.py` notes what it reads.
"""
