import json

import numpy as np
import pytest

from taxiway.proof.cases import Case
from taxiway.proof.profile import describe, profile


def test_numbers_are_described_by_moments_quantiles_and_deciles():
    values = np.arange(1.0, 102.0) + 0.5  # 1.5 ... 101.5
    found = describe("age", values.astype(np.float32))
    assert (found["column"], found["count"], found["missing"]) == ("age", 101, 0)
    assert (found["min"], found["max"], found["mean"]) == (1.5, 101.5, 51.5)
    assert found["std"] == pytest.approx(np.sqrt((101**2 - 1) / 12))
    assert list(found["quantiles"]) == [
        *("0", "1", "5", "10", "20", "25", "30", "40", "50", "60", "70", "75", "80", "90", "95", "99", "100")
    ]
    assert found["quantiles"]["0"] == 1.5
    assert found["quantiles"]["1"] == 2.5
    assert found["quantiles"]["75"] == 76.5
    assert found["deciles"]["edges"] == [1.5 + 10 * i for i in range(11)]
    assert found["deciles"]["counts"] == [10] * 9 + [11]
    assert "categories" not in found


def test_missing_values_are_counted_and_left_out():
    found = describe("x", np.array([1.0, np.nan, 3.0, np.inf, -np.inf]))
    assert (found["count"], found["missing"], found["mean"], found["min"], found["max"]) == (2, 3, 2.0, 1.0, 3.0)
    assert sum(found["deciles"]["counts"]) == 2


def test_a_column_of_nothing_but_missing_values_says_so():
    assert describe("x", np.full(4, np.nan)) == {"column": "x", "count": 0, "missing": 4}


def test_a_constant_has_one_decile_that_holds_everything():
    found = describe("x", np.full(7, 2.5))
    assert found["deciles"] == {"edges": [2.5, 2.5], "counts": [7]}
    assert found["std"] == 0.0


def test_equal_decile_edges_are_put_together_and_no_value_is_lost():
    found = describe("x", np.array([0.0] * 80 + [0.5] * 10 + [2.5] * 10))
    edges, counts = found["deciles"]["edges"], found["deciles"]["counts"]
    assert edges == sorted(set(edges))
    assert len(counts) == len(edges) - 1
    assert sum(counts) == 100


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
def test_whole_numbers_of_few_levels_are_counted_by_level_whatever_their_type(dtype):
    assert describe("x", np.array([0, 1, 1, 3], dtype=dtype))["categories"] == {"0": 1, "1": 2, "3": 1}


def test_negative_levels_and_missing_values_do_not_hide_the_categories():
    assert describe("x", np.array([-1.0, 1.0, np.nan, 1.0]))["categories"] == {"-1": 1, "1": 2}


def test_large_whole_numbers_are_not_rounded():
    assert describe("id", np.array([2**60, 2**60 + 1]))["categories"] == {str(2**60): 1, str(2**60 + 1): 1}


def test_many_levels_are_only_numbered():
    found = describe("x", np.arange(51))
    assert found["levels"] == 51
    assert "categories" not in found
    assert len(describe("x", np.arange(50))["categories"]) == 50


def test_text_is_counted_by_level():
    found = describe("city", np.array(["b", "é", "b", None], dtype=object))
    assert found == {"column": "city", "count": 3, "missing": 1, "categories": {"b": 2, "é": 1}}


def case(x, y):
    return Case({"X": np.asarray(x, dtype=np.float32)}, {"y": np.asarray(y, dtype=np.float32)})


def test_a_table_is_described_column_by_column_under_its_names():
    found = profile([case([[1, 10], [3, 30]], [[0], [1]])], {"X": ("a", "b")})
    assert found["rows"] == 2
    assert [(c["column"], c["mean"]) for c in found["inputs"]["X"]] == [("a", 2.0), ("b", 20.0)]
    assert [(c["column"], c["mean"]) for c in found["outputs"]["y"]] == [("0", 0.5)]


def test_names_that_do_not_fit_are_not_used():
    found = profile([case([[1, 10]], [[0]])], {"X": ("only one",)})
    assert [c["column"] for c in found["inputs"]["X"]] == ["0", "1"]


def test_cases_of_one_width_are_described_together():
    found = profile([case([[1]], [[0]]), case([[3], [5]], [[0], [0]])], {})
    assert found["rows"] == 3
    assert found["inputs"]["X"][0]["mean"] == 3.0


def test_a_tensor_of_varying_length_is_described_by_values_and_lengths():
    found = profile([case([[1, 2, 3]], [[0]]), case([[4], [5]], [[0], [0]])], {})
    values, length = found["inputs"]["X"]
    assert (values["column"], values["count"], values["mean"]) == ("values", 5, 3.0)
    assert (length["column"], length["count"], length["categories"]) == ("length", 3, {"1": 2, "3": 1})


def test_a_profile_is_plain_json():
    made = profile([case([[np.nan, 1e30], [2, -1e30]], [[np.inf], [0]])], {})
    assert json.loads(json.dumps(made, allow_nan=False)) == made
