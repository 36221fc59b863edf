"""The contract parameter, as the backend reads and applies it."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from taxiway.engine.backends.onnxruntime.taxiway_onnx import rules, words
from taxiway.engine.backends.onnxruntime.taxiway_onnx.parameter import read
from taxiway.engine.backends.onnxruntime.taxiway_onnx.rules import BadRequest, Rules

INPUTS = [
    {"name": "X", "data_type": "TYPE_FP32", "dims": ["3"]},
    {"name": "ids", "data_type": "TYPE_INT64", "dims": ["-1", "1024"]},
    {"name": "city", "data_type": "TYPE_STRING", "dims": ["1"]},
    {"name": "codes", "data_type": "TYPE_INT8", "dims": ["2"]},
    {"name": "items", "data_type": "TYPE_INT64", "dims": ["-1"]},
    {"name": "times", "data_type": "TYPE_FP64", "dims": ["-1"]},
    {"name": "flag", "data_type": "TYPE_BOOL", "dims": ["1"]},
]


def config(parameter: object, *, max_batch_size: int = 8) -> dict:
    text = parameter if isinstance(parameter, str) else json.dumps(parameter)
    return {
        "max_batch_size": max_batch_size,
        "input": INPUTS,
        "parameters": {"taxiway_contract": {"string_value": text}},
    }


def made(**parameter: object) -> Rules:
    return read(config(parameter))


def refusal(given: Rules, **feed: object) -> str:
    """What is said of the feed; empty when it is accepted."""
    try:
        rules.enforce(given, {name: np.asarray(values) for name, values in feed.items()})
    except BadRequest as error:
        return str(error)
    return ""


def floats(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def text(*values: str) -> np.ndarray:
    return np.array([[v] for v in values], dtype=object)


READ = made(finite=["X"], max_length={"ids": 4}, columns={"X": ["a", "b", "c"]})


def test_without_the_parameter_everything_goes() -> None:
    free = read({"max_batch_size": 8, "input": INPUTS})
    assert refusal(free, X=floats([np.nan] * 3)) == ""


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ({"finit": []}, "unknown key 'finit'"),
        ({"finite": "X"}, "finite must be a list"),
        ({"finite": ["Y"]}, "finite names 'Y'; the inputs are X, ids, city"),
        ({"finite": [["X"]]}, "finite names"),
        ({"finite": ["ids"]}, "finite names 'ids', which is TYPE_INT64"),
        ({"no_infinity": ["ids"]}, "no_infinity names 'ids', which is TYPE_INT64, not floats"),
        ({"max_length": ["ids"]}, "max_length must map"),
        ({"max_length": {"ids": 0}}, "whole numbers above 0"),
        ({"max_length": {"ids": True}}, "whole numbers above 0"),
        ({"max_length": {"Y": 3}}, "max_length names 'Y'"),
        ({"columns": {"X": "abc"}}, "columns must map"),
        ({"columns": {"Y": []}}, "columns names 'Y'"),
        ({"nan": {"X": 1}}, "nan must map"),
        ({"nan": {"X": [3]}}, "nan names column 3 of 'X', which has columns 0 to 2"),
        ({"nan": {"X": [-1]}}, "nan names column -1"),
        ({"nan": {"X": [True]}}, "nan names column True"),
        ({"nan": {"ids": []}}, "nan names 'ids', which is TYPE_INT64, not floats"),
        ({"range": {"X": [0, 1]}}, "range must map"),
        ({"range": {"X": {"0": [0]}}}, "must be [least, greatest]"),
        ({"range": {"X": {"0": [None, None]}}}, "must be [least, greatest]"),
        ({"range": {"X": {"0": [True, 2]}}}, "must be [least, greatest]"),
        ({"range": {"X": {"0": [2, 1]}}}, "range of 'X' accepts nothing: no TYPE_FP32 lies in [2, 1]"),
        ({"range": {"codes": {"0": [0.2, 0.8]}}}, "accepts nothing: no TYPE_INT8"),
        ({"range": {"codes": {"0": [128, None]}}}, "accepts nothing: no TYPE_INT8"),
        ({"range": {"X": {"3": [0, 1]}}}, "range names column '3' of 'X'"),
        ({"range": {"X": {"age": [0, 1]}}}, "range names column 'age' of 'X'"),
        ({"range": {"X": {"*": [0, 1], "0": [0, 1]}}}, "all columns of 'X' and single ones as well"),
        ({"range": {"items": {"0": [0, 1]}}}, "range names column '0' of 'items', which has no fixed number"),
        ({"range": {"city": {"*": [0, 1]}}}, "range names 'city', which is TYPE_STRING, not numbers"),
        ({"range": {"flag": {"*": [0, 1]}}}, "range names 'flag', which is TYPE_BOOL, not numbers"),
        ({"allowed": {"city": ["a"]}}, "allowed must map"),
        ({"allowed": {"city": {"*": []}}}, "allowed must map"),
        ({"allowed": {"city": {"*": [1]}}}, "allowed of 'city' must be texts, not 1"),
        ({"allowed": {"codes": {"0": [1.5]}}}, "allowed of 'codes' must be TYPE_INT8 numbers, not 1.5"),
        ({"allowed": {"codes": {"0": [200]}}}, "allowed of 'codes' must be TYPE_INT8 numbers, not 200"),
        ({"allowed": {"X": {"0": ["a"]}}}, "allowed of 'X' must be finite numbers, not 'a'"),
        ({"allowed": {"flag": {"*": [1]}}}, "allowed of 'flag' must be true and false, not 1"),
        ({"max_bytes": {"X": 3}}, "max_bytes names 'X', which is TYPE_FP32, not text"),
        ({"max_bytes": {"city": 0}}, "max_bytes must map"),
        ({"same_length": {"items": 3}}, "same_length must map"),
        ({"same_length": {"items": "Y"}}, "same_length names 'Y'"),
        ({"same_length": {"items": "X"}}, "same_length names 'X', which has not one open dim but 0"),
    ],
)
def test_a_malformed_parameter_is_refused_with_the_reason(parameter: object, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^parameter taxiway_contract") as refused:
        read(config(parameter))
    assert reason in str(refused.value)


def test_only_open_dims_are_bounded() -> None:
    assert refusal(READ, ids=np.zeros((2, 4, 1024))) == ""
    assert "'ids' has 5 values along axis 1; at most 4" in refusal(READ, ids=np.zeros((2, 5, 1024)))


def test_without_batches_the_first_axis_is_a_dim_too() -> None:
    single = read(config({"max_length": {"ids": 4}}, max_batch_size=0))
    assert "along axis 0" in refusal(single, ids=np.zeros((5, 1024)))


def test_the_first_value_that_is_not_finite_is_named_by_row_and_column() -> None:
    X = np.ones((4, 3), np.float32)
    X[2, 1] = -np.inf
    X[3, 0] = np.nan
    assert refusal(READ, X=X) == (
        "input 'X': row 2, column 1 ('b') is -Infinity (and 1 more); only finite numbers are accepted (counting from 0)"
    )


def test_nan_is_accepted_in_nullable_columns_only() -> None:
    given = made(nan={"X": [0, 2]}, columns={"X": ["a", "b"]})
    assert refusal(given, X=floats([np.nan, np.inf, np.nan])) == ""
    assert refusal(given, X=floats([1, 1, 1], [1, np.nan, 1])) == (
        "input 'X': row 1, column 1 ('b') is NaN; NaN is accepted only in column 0 ('a'), 2 (counting from 0)"
    )
    assert "is NaN (and 6 more); NaN is not accepted" in refusal(made(nan={"times": []}), times=np.full((1, 7), np.nan))


def test_infinities_are_refused_where_nan_is_not() -> None:
    given = made(no_infinity=["X"])
    assert refusal(given, X=floats([np.nan, 1, 1])) == ""
    assert "column 2 is -Infinity; infinities are not accepted" in refusal(given, X=floats([1, 1, -np.inf]))


def test_a_value_out_of_range_is_named_with_what_its_column_accepts() -> None:
    given = made(range={"X": {"0": [0, 120], "1": [None, 5], "2": [0.5, None]}}, columns={"X": ["age", "b", "c"]})
    assert refusal(given, X=floats([0, -9, 0.5], [120, 5, 1e30])) == ""
    assert refusal(given, X=floats([1, 1, 1], [150, 1, 1])) == (
        "input 'X': row 1, column 0 ('age') is 150.0; numbers from 0 to 120 are accepted (counting from 0)"
    )
    assert "('b') is 5.5; numbers of at most 5 are accepted" in refusal(given, X=floats([1, 5.5, 1]))
    assert "('c') is 0.0; numbers of at least 0.5 are accepted" in refusal(given, X=floats([1, 1, 0]))
    assert "is Infinity; numbers from 0 to 120" in refusal(given, X=floats([np.inf, 1, 1]))


def test_nan_is_in_every_range_and_among_all_allowed_values() -> None:
    given = made(range={"X": {"0": [0, 1]}}, allowed={"X": {"1": [1, 2]}})
    assert refusal(given, X=floats([np.nan, np.nan, 7])) == ""


@pytest.mark.parametrize("bound", [0.1, 0.7, 1e-3, 16777217])
def test_a_bound_is_met_by_what_a_caller_writes_alike(bound: float) -> None:
    # float32(0.1) is greater than 0.1.
    given = made(range={"X": {"*": [bound, bound]}}, allowed={"X": {"*": [bound]}})
    assert refusal(given, X=floats([bound] * 3)) == ""
    assert refusal(given, X=np.nextafter(floats([bound] * 3), np.float32(9e9))) != ""


def test_whole_numbers_have_ranges_exact_beyond_float64() -> None:
    given = made(range={"items": {"*": [-(2**63), 2**53]}, "codes": {"0": [0.5, 1e9]}})
    assert refusal(given, items=np.array([[2**53, -(2**63)]]), codes=np.array([[1, -5]], np.int8)) == ""
    assert "column 1 is 9007199254740993; numbers from" in refusal(given, items=np.array([[1, 2**53 + 1]]))
    assert "column 0 is 0; numbers from 0.5 to" in refusal(given, codes=np.array([[0, 0]], np.int8))


def test_a_text_that_is_not_allowed_is_named_with_those_that_are() -> None:
    given = made(allowed={"city": {"*": ["Bern", "Örebro"]}})
    assert refusal(given, city=text("Bern", "Örebro")) == ""
    assert refusal(given, city=text("Bern", "Atlantis", "")) == (
        "input 'city': row 1, column 0 is 'Atlantis' (and 1 more); accepted are 'Bern', 'Örebro' (counting from 0)"
    )


def test_numbers_have_allowed_values_by_column() -> None:
    given = made(allowed={"codes": {"1": [1, 2]}, "items": {"*": [7]}, "X": {"2": [0, 1]}, "flag": {"*": [True]}})
    good = {"codes": np.array([[9, 2]], np.int8), "items": np.array([[7, 7]]), "X": floats([5, 5, 1])}
    assert refusal(given, **good, flag=[[True]]) == ""
    assert "'codes': row 0, column 1 is 3; accepted are 1, 2" in refusal(given, codes=np.array([[9, 3]], np.int8))
    assert "'items': row 0, column 1 is 8; accepted are 7" in refusal(given, items=np.array([[7, 8]]))
    assert "'X': row 0, column 2 is 0.5; accepted are 0, 1" in refusal(given, X=floats([5, 5, 0.5]))
    assert "is False; accepted are True" in refusal(given, flag=[[False]])


def test_a_long_text_and_a_long_list_of_allowed_ones_are_shown_cut() -> None:
    given = made(allowed={"city": {"*": [f"c{i}" for i in range(5000)]}})
    said = refusal(given, city=text("x" * 1000))
    assert f"is '{'x' * 40}…'; accepted are 'c0', 'c1', " in said
    assert "'c99' and 4900 more" in said
    assert len(refusal(made(allowed={"city": {"*": ["東" * 100] * 90}}), city=text("東" * 90)).encode()) < 2500


def test_a_value_is_shown_even_where_it_fills_the_whole_message() -> None:
    assert words.listed(["x" * 9999, "y"]) == "x" * 9999 + " and 1 more"


def test_texts_are_measured_in_bytes() -> None:
    given = made(max_bytes={"city": 6})
    assert refusal(given, city=text("sechs!", "äöü", "")) == ""
    assert refusal(given, city=text("a", "äöüß")) == (
        "input 'city': row 1, column 0 is 'äöüß'; texts of at most 6 bytes are accepted (counting from 0)"
    )


def test_lists_that_go_together_must_be_equally_long() -> None:
    given = made(same_length={"times": "items"})
    assert refusal(given, items=np.zeros((2, 3)), times=np.zeros((2, 3))) == ""
    assert refusal(given, items=np.zeros((2, 3))) == ""
    assert refusal(given, items=np.zeros((2, 3)), times=np.zeros((2, 4))) == (
        "input 'times' has 4 values and 'items' has 3; equally many are accepted"
    )


def test_a_single_column_may_have_lost_its_axis_on_the_way_to_the_graph() -> None:
    given = made(allowed={"city": {"0": ["a"]}}, max_bytes={"city": 9})
    flat = np.array(["a", "b"], dtype=object)
    assert refusal(given, city=flat).startswith("input 'city': row 1 is 'b'; accepted are 'a'")


@given(arrays.arrays(np.float32, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_a_feed_is_clean_exactly_when_nothing_is_raised(X: np.ndarray) -> None:
    passed = refusal(READ, X=X) == ""
    assert passed is rules.clean(READ, {"X": X}) is all(math.isfinite(v) for v in X.reshape(-1))


@given(st.integers(0, 9))
def test_clean_and_enforce_agree_on_lengths(length: int) -> None:
    feed = {"ids": np.zeros((1, length, 1024), np.int8)}
    assert rules.clean(READ, feed) is (length <= 4)


_bound = st.none() | st.integers(-3, 3) | st.floats(-3, 3, width=16)
_range = st.tuples(_bound, _bound).filter(lambda b: b != (None, None)).map(list)
_some = st.lists(st.sampled_from([0, 1, 2, -1]), min_size=1)


@st.composite
def _parameters(draw: st.DrawFn) -> dict:
    """Any mixture of rules on X, codes, city, items and times; a range may accept nothing."""
    rows = {
        "finite": st.lists(st.sampled_from(["X", "times"]), unique=True),
        "no_infinity": st.lists(st.sampled_from(["X", "times"]), unique=True),
        "nan": st.fixed_dictionaries({}, optional={"X": st.lists(st.integers(0, 2)), "times": st.just([])}),
        "range": st.fixed_dictionaries(
            {},
            optional={
                "X": st.dictionaries(st.sampled_from("012"), _range) | st.fixed_dictionaries({"*": _range}),
                "codes": st.dictionaries(st.sampled_from("01"), _range),
                "times": st.fixed_dictionaries({"*": _range}),
            },
        ),
        "allowed": st.fixed_dictionaries(
            {},
            optional={
                "X": st.dictionaries(st.sampled_from("012"), _some),
                "codes": st.dictionaries(st.sampled_from("01"), _some),
                "items": st.fixed_dictionaries({"*": _some}),
                "city": st.fixed_dictionaries({"0": st.lists(st.sampled_from(["a", "ä", ""]), min_size=1)}),
            },
        ),
        "max_bytes": st.fixed_dictionaries({}, optional={"city": st.integers(1, 4)}),
        "max_length": st.fixed_dictionaries({}, optional={"items": st.integers(1, 3)}),
        "same_length": st.fixed_dictionaries({}, optional={"times": st.just("items")}),
    }
    return draw(st.fixed_dictionaries({}, optional=rows))


_number = st.sampled_from([0.0, 1.0, -1.0, 2.0, 5.0, 0.1, math.nan, math.inf, -math.inf])


@st.composite
def _feeds(draw: st.DrawFn) -> dict[str, np.ndarray]:
    rows, length, other = draw(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(0, 4)))

    def values(kind: object, shape: tuple[int, ...], elements: st.SearchStrategy) -> np.ndarray:
        flat = draw(st.lists(elements, min_size=math.prod(shape), max_size=math.prod(shape)))
        return np.array(flat, dtype=kind).reshape(shape)

    whole = st.integers(-2, 3)
    return {
        "X": values(np.float32, (rows, 3), _number),
        "codes": values(np.int8, (rows, 2), whole),
        "city": values(object, (rows, 1), st.sampled_from(["a", "ä", "", "aaa", "日本", "\ud800"])),
        "items": values(np.int64, (rows, length), whole),
        "times": values(np.float64, (rows, other), _number),
    }


def _one_by_one(parameter: dict, feed: dict[str, np.ndarray]) -> bool:
    """Does every value keep the rules, by the definition of each?"""

    def within(name: str, value: float, column: int) -> bool:
        entries = parameter.get("range", {}).get(name, {})
        least, greatest = entries.get("*", entries.get(str(column), (None, None)))
        kind = feed[name].dtype.type if feed[name].dtype.kind == "f" else float
        low = least is None or not value < kind(least)
        return low and (greatest is None or not value > kind(greatest))

    def member(name: str, value: object, column: int) -> bool:
        entries = parameter.get("allowed", {}).get(name, {})
        members = entries.get("*", entries.get(str(column)))
        return members is None or value in members or value != value

    def special(name: str, value: float, column: int) -> bool:
        if name not in ("X", "times") or math.isfinite(value):
            return True
        if name in parameter.get("finite", []):
            return False
        if math.isinf(value):
            return name not in parameter.get("no_infinity", [])
        return column in parameter.get("nan", {}).get(name, [column])

    def text_fits(name: str, value: object, column: int) -> bool:
        limit = parameter.get("max_bytes", {}).get("city", 99)
        return name != "city" or len(str(value).encode("utf-8", "surrogatepass")) <= limit

    if feed["items"].shape[1] > parameter.get("max_length", {}).get("items", 99):
        return False
    if "same_length" in parameter and parameter["same_length"] and feed["items"].shape[1] != feed["times"].shape[1]:
        return False
    return all(
        keeps(name, value, where[1])
        for name, values in feed.items()
        for where, value in np.ndenumerate(values)
        for keeps in ((within,) if name in ("X", "codes", "times") else ()) + (member, special, text_fits)
    )


@given(_parameters(), _feeds())
def test_a_batch_is_clean_exactly_when_each_of_its_rows_is_accepted(
    parameter: dict, feed: dict[str, np.ndarray]
) -> None:
    try:
        found = read(config(parameter))
    except ValueError as error:
        assert "accepts nothing" in str(error)  # noqa: PT017
        return
    rows = [{name: values[i : i + 1] for name, values in feed.items()} for i in range(len(feed["X"]))]
    alone = [refusal(found, **row) == "" for row in rows]
    assert rules.clean(found, feed) is all(alone)
    assert alone == [_one_by_one(parameter, row) for row in rows]
