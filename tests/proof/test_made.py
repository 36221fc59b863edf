import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taxiway.proof import made
from taxiway.proof.tensors import Input

TABLE = pd.DataFrame(
    {
        "age": [20.0, 30.0, 41.0, np.nan],
        "fee": [1.5, 2.25, 8.0, 9.0],
        "zip": [1, 2, 5, 1],
        "city": np.array(["Ulm", "Ulm", "Köln", "Rom"], dtype=object),
    }
)
INPUTS = tuple(Input(c, "X", 1, c) for c in TABLE)


def by_kind(inputs, table, count=60):
    return {m.kind: m.table for m in made.made(inputs, table, count)}


def test_each_made_row_is_a_row_of_the_notebook_with_one_value_changed():
    rows = {tuple(map(str, row)) for row in TABLE.itertuples(index=False)}
    for table in by_kind(INPUTS, TABLE).values():
        for row in table.itertuples(index=False):
            changed = [sum(a != b for a, b in zip(map(str, row), other, strict=True)) for other in rows]
            assert min(changed) == 1


def test_ties_lie_halfway_between_neighbours():
    kinds = by_kind(INPUTS, TABLE)
    assert set(kinds["tie"].age.dropna()) - set(TABLE.age) == {25.0, 35.5}
    assert set(kinds["fine-tie"].fee) - set(TABLE.fee) == {1.875, 5.125, 8.5}


def test_missing_values_are_made_only_where_the_notebook_has_some():
    assert by_kind(INPUTS, TABLE)["missing"].age.isna().any()
    assert "missing" not in by_kind(INPUTS[1:], TABLE.drop(columns="age"))


def test_categories_and_texts_are_made_that_nobody_has_seen():
    kinds = by_kind(INPUTS, TABLE)
    assert set(kinds["unseen"].zip) - set(TABLE.zip) >= {0, 6, 3}
    assert "" in set(kinds["unseen"].city)
    assert any(not text.isascii() for text in set(kinds["non-ascii"].city) - set(TABLE.city))


def test_texts_alone_are_varied_too():
    kinds = by_kind((Input("text", "BYTES", 1),), np.array(["good film", "bad film"], dtype=object))
    assert "BAD FILM" in kinds["unseen"].tolist()


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(1, 4)), elements=st.floats(width=32)))
def test_any_table_of_numbers_gives_the_same_finite_number_of_rows_each_time(values):
    inputs = (Input("X", "FP32", values.shape[1]),)
    first, second = made.made(inputs, values, 50), made.made(inputs, values, 50)
    assert [m.kind for m in first] == [m.kind for m in second]
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.table, other.table, equal_nan=True)
        assert one.table.shape == (one.rows, values.shape[1])
        assert one.rows <= 60
