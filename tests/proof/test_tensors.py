import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from taxiway.core.errors import Refused
from taxiway.proof import tensors
from taxiway.proof.tensors import Input

TABLE = pd.DataFrame(
    {"age": [20.0, 30.5, 41.0], "zip": [1.0, 2.0, 2.0], "city": np.array(["Ulm", "Köln", "Ulm"], dtype=object)}
)


def fitted(*parts, table=TABLE, **more):
    return make_pipeline(make_column_transformer(*parts, **more), LogisticRegression()).fit(table, [0, 1, 0])


def test_numbers_are_one_tensor_and_texts_one_of_their_own():
    assert tensors.signature(LogisticRegression(), np.ones((3, 4)), ()) == (Input("X", "FP32", 4),)
    assert tensors.signature(LogisticRegression(), TABLE[["age", "zip"]], ()) == (Input("X", "FP32", 2),)
    texts = np.array(["a", "b"], dtype=object)
    assert tensors.signature(LogisticRegression(), texts, ()) == (Input("text", "BYTES", 1),)


def test_a_mixed_table_is_one_tensor_for_each_column_and_whole_categories_are_int64():
    model = fitted((StandardScaler(), ["age"]), (OneHotEncoder(), ["zip", "city"]))
    inputs = tensors.signature(model, TABLE, ("label",))
    assert [(i.name, i.dtype) for i in inputs] == [("age", "FP32"), ("zip", "INT64"), ("city", "BYTES")]
    feeds = tensors.feeds(inputs, TABLE)
    assert {n: (str(v.dtype), v.shape) for n, v in feeds.items()} == {
        "age": ("float32", (3, 1)),
        "zip": ("int64", (3, 1)),
        "city": ("object", (3, 1)),
    }


def test_numbers_that_are_taken_by_name_are_tensors_of_their_own():
    model = fitted((StandardScaler(), ["age"]), table=TABLE[["age", "zip"]], remainder="passthrough")
    inputs = tensors.signature(model, TABLE[["age", "zip"]], ())
    assert [(i.name, i.dtype) for i in inputs] == [("age", "FP32"), ("zip", "FP32")]


@pytest.mark.parametrize("chosen", [["zip", "city"], slice("zip", "city"), [1, 2], slice(1, 3), [False, True, True]])
def test_encoded_columns_are_found_however_they_are_chosen(chosen):
    model = ColumnTransformer([("e", OneHotEncoder(), chosen)]).fit(TABLE)
    assert tensors.encoded_columns(model, list(TABLE.columns)) == {"zip", "city"}
    assert tensors.encoded_columns(OrdinalEncoder().fit(TABLE), list(TABLE.columns)) == set(TABLE.columns)
    assert tensors.encoded_columns(StandardScaler(), list(TABLE.columns)) == set()


def test_categories_with_fractions_stay_floats():
    model = fitted((OneHotEncoder(), ["age"]))
    inputs = tensors.signature(model, TABLE, ())
    assert [i.dtype for i in inputs if i.name == "age"] == ["FP32"]


def test_only_an_encoder_that_refuses_others_limits_what_may_be_sent():
    strict = fitted((OneHotEncoder(), ["zip", "city"]))
    inputs = tensors.signature(strict, TABLE, ())
    assert tensors.allowed(strict, inputs) == {"zip": (1, 2), "city": ("Köln", "Ulm")}
    lenient = fitted((OneHotEncoder(handle_unknown="ignore"), ["zip", "city"]))
    assert tensors.allowed(lenient, inputs) == {}


def test_a_column_called_like_an_answer_is_refused():
    table = TABLE.rename(columns={"city": "label"})
    model = fitted((OneHotEncoder(), ["label"]), table=table)
    with pytest.raises(Refused, match="'label' is called like an answer"):
        tensors.signature(model, table, ("label", "probabilities"))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_asked_holds_float32_values_in_the_form_that_was_fitted(dtype):
    rows = np.array([[0.1, 1 / 3]], dtype=dtype)
    inputs = (Input("X", "FP32", 2),)
    asked = tensors.as_asked(inputs, rows)
    assert asked.dtype == dtype
    assert asked.tolist() == rows.astype(np.float32).astype(dtype).tolist()
    frame = tensors.as_asked(inputs, pd.DataFrame(rows, columns=["a", "b"]))
    assert set(frame.dtypes) == {np.dtype(dtype)}


def test_numbers_beyond_float32_are_told_by_tensor():
    inputs = (Input("age", "FP32", 1, "age"), Input("city", "BYTES", 1, "city"))
    assert tensors.beyond_float32(inputs, TABLE) == []
    assert tensors.beyond_float32(inputs, TABLE.assign(age=[1.0, 1e39, np.inf])) == ["age"]
