"""What a revision is: its files, its manifest and digest, and the store that never changes one.

`manifest.py` says which bytes make a revision (pure), `store.py` keeps them on disk and proves them unchanged,
`pbtxt.py` writes and reads Triton's `config.pbtxt`. How a revision is run or routed is no business of this room.
"""
