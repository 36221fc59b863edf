import sqlite3
import threading

import pytest

from taxiway.core.errors import Refused
from taxiway.release.ports import Overtaken
from taxiway.release.sql import SqlJournal


@pytest.fixture
def journal(tmp_path):
    journal = SqlJournal(f"sqlite:///{tmp_path / 'control.db'}")
    yield journal
    journal.close()


def write(journal, last, model="risk"):
    return journal.append(
        last, at=1.5, actor="ann", action="admit", model=model, detail={"number": 1, "digest": "ü"}, reason="why not"
    )


def test_what_was_written_is_read_back_in_order(journal):
    entries = [write(journal, 0), write(journal, 1, "other")]
    assert journal.read() == entries
    assert journal.read(after=1) == entries[1:]


def test_who_was_overtaken_is_told_and_writes_nothing(journal):
    write(journal, 0)
    with pytest.raises(Overtaken):
        write(journal, 0)
    assert len(journal.read()) == 1


def test_of_many_writers_of_the_same_number_one_wins(tmp_path):
    url = f"sqlite:///{tmp_path / 'control.db'}"
    SqlJournal(url).close()
    won = []

    def attempt():
        mine = SqlJournal(url)
        try:
            won.append(write(mine, 0))
        except Overtaken:
            pass
        finally:
            mine.close()

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(won) == 1


@pytest.mark.parametrize("statement", ["DELETE FROM journal", "UPDATE journal SET actor = 'bob'"])
def test_history_cannot_be_rewritten(journal, tmp_path, statement):
    write(journal, 0)
    with (
        sqlite3.connect(tmp_path / "control.db") as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement)


def test_a_file_that_is_no_database_is_refused_with_its_place(tmp_path):
    (tmp_path / "control.db").write_text("not a database, but long enough to be looked at" * 40)
    with pytest.raises(Refused, match=r"control\.db cannot be used"):
        SqlJournal(f"sqlite:///{tmp_path / 'control.db'}")
