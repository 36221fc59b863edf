"""Who shall answer: the journal of decisions and the state that follows from it.

`entries.py` holds the nouns, `state.py` folds a journal into the state (pure), `ports.py` says what a journal
must do, `sql.py` is the journal in a database. Nothing here starts an engine or writes a route.
"""
