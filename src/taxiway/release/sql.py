"""The journal in a database (SQLite by default, PostgreSQL by URL), through SQLAlchemy Core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from taxiway.core.errors import Refused
from taxiway.release.entries import Entry
from taxiway.release.ports import Overtaken

_metadata = sa.MetaData()
_journal = sa.Table(
    "journal",
    _metadata,
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)

# The database itself refuses to rewrite history.
for _verb in ("UPDATE", "DELETE"):
    sa.event.listen(
        _journal,
        "after_create",
        sa.DDL(  # type: ignore[no-untyped-call]
            f"CREATE TRIGGER journal_no_{_verb.lower()} BEFORE {_verb} ON journal "
            "BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END"
        ).execute_if(dialect="sqlite"),
    )


class SqlJournal:
    """Satisfies `release.ports.Journal`."""

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(url)
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _durable)
        with _readable(str(self._engine.url)):
            _metadata.create_all(self._engine)

    def read(self, after: int = 0) -> list[Entry]:
        query = sa.select(_journal).where(_journal.c.seq > after).order_by(_journal.c.seq)
        with _readable(str(self._engine.url)), self._engine.connect() as connection:
            return [Entry(**row._mapping) for row in connection.execute(query)]

    def append(
        self, last: int, *, at: float, actor: str, action: str, model: str, detail: Mapping[str, Any], reason: str
    ) -> Entry:
        entry = Entry(last + 1, at, actor, action, model, dict(detail), reason)
        try:
            with _readable(str(self._engine.url)), self._engine.begin() as connection:
                connection.execute(_journal.insert().values(**entry.to_json()))
        except sa.exc.IntegrityError:
            raise Overtaken from None
        return entry

    def close(self) -> None:
        self._engine.dispose()


def _durable(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA busy_timeout=5000")


@contextmanager
def _readable(url: str) -> Iterator[None]:
    """Turn the database's own errors into one a person can act on; conflicts pass through."""
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except sa.exc.DBAPIError as error:
        raise Refused(f"the journal {url} cannot be used: {error.orig}") from error
