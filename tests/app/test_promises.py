"""What a person says of the outputs: a promise that no recorded answer contradicts."""

import math

import numpy as np
import pytest
import yaml

from taxiway.app.overrides.lay import apply, hold
from taxiway.catalog.pbtxt import config_pbtxt
from taxiway.core.contract import Column, Contract, Field
from taxiway.core.errors import Refused
from taxiway.core.sample import Tensor
from taxiway.core.tensor import TensorSpec
from taxiway.proof.cases import Case, tensor
from taxiway.proof.contract import contract

FEEDS = {"X": np.array([[1.0], [2], [3]], np.float32), "ids": np.array([[1, 2], [3, 4], [5, 6]])}
EXPECTED = {
    "label": np.array([[0], [1], [1]]),
    "probabilities": np.array([[0.75, 0.25], [0.25, 0.75], [0.0, 1.0]], np.float32),
    "name": np.array([["no"], ["yes"], ["yes"]], dtype=object),
    "risk": np.array([[1.5], [np.nan], [-2]], np.float32),
    "scores": np.array([[1.0, 2], [3, 4], [5, 6]], np.float32),
    "X": np.array([[True], [False], [True]]),
}
MADE = contract([Case(FEEDS, EXPECTED)], {"probabilities": ("0", "1")}, {"ids": (-1,), "scores": (-1,)})
ASKED = [{name: tensor(values) for name, values in FEEDS.items()}]
ANSWERS = [{name: tensor(values) for name, values in EXPECTED.items()}]


def laid(text, answers=ANSWERS):
    """The outputs by name, once what the YAML says of them is laid over them."""
    found = apply(MADE, {"outputs": yaml.safe_load(text)}, ASKED, answers)
    assert found.inputs == MADE.inputs
    return {f.name: f for f in found.outputs}


def mistakes(text, answers=ANSWERS):
    with pytest.raises(Refused) as no:
        laid(text, answers)
    assert no.value.code == "contract"
    return list(no.value.reasons)


def test_a_promise_is_written_into_the_contract():
    found = laid(
        """
        label: {allowed: [0, 1, 2]}
        probabilities: {min: 0, max: 1, columns: {"1": {min: 0.25}}}
        name: {allowed: ["no", "yes"], max_bytes: 3}
        risk: {max: 9}
        scores: {max_length: 5}
        X: {allowed: [true, false]}
        """
    )
    assert found["label"].table == (Column(allowed=(0, 1, 2)),)
    assert [(c.name, c.minimum, c.maximum) for c in found["probabilities"].table] == [("0", 0, 1), ("1", 0.25, 1)]
    assert (found["name"].table, found["name"].max_bytes) == ((Column(allowed=("no", "yes")),), 3)
    assert [(c.nullable, c.maximum) for c in found["risk"].table] == [(True, 9)]
    assert found["scores"].max_length == 5
    assert found["X"].table == (Column(allowed=(True, False)),)


def test_a_promise_can_be_weaker_than_what_was_seen():
    found = laid("{probabilities: {nullable: true}, scores: {infinite: true, same_length_as: null}}")
    assert (found["probabilities"].finite, all(c.nullable for c in found["probabilities"].table)) == (False, True)
    assert (found["scores"].infinite, found["scores"].same_length_as) == (True, None)


def test_an_output_can_be_as_long_as_an_input():
    assert {f.name: f.same_length_as for f in MADE.outputs}["scores"] == "ids"
    assert laid("{scores: {same_length_as: ids}}")["scores"].same_length_as == "ids"
    assert laid("{scores: {same_length_as: ids}}", ())["scores"].same_length_as == "ids"
    assert "known are X, ids" in mistakes("{scores: {same_length_as: label}}")[0]
    # An input may have the name of an output.
    assert "'X' has dims [1]" in mistakes("{X: {same_length_as: X}}")[0]
    plain = Contract(
        tuple(Field(TensorSpec(n, "INT64", (-1,))) for n in "a"), (Field(TensorSpec("b", "INT64", (-1,))),)
    )
    asked = [{"a": Tensor("INT64", (1, n), (0,) * n)} for n in (1, 2)]
    answers = [{"b": Tensor("INT64", (1, 2), (0, 0))}] * 2
    with pytest.raises(Refused, match=r"outputs\.b: same_length_as 'a' contradicts 1 of the 2 proved requests"):
        apply(plain, {"outputs": {"b": {"same_length_as": "a"}}}, asked, answers)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{labels: {}}", "contract.outputs.labels: no such output; did you mean 'label'?"),
        ("{ids: {}}", "contract.outputs.ids: no such output; known are label, probabilities, name, risk, scores, X"),
        ("{label: {mn: 3}}", "contract.outputs.label.mn: no such key; did you mean 'min'?"),
        ("{label: {min: a}}", "contract.outputs.label.min: expected a number, or null for no bound, not 'a'"),
        (
            "{label: {nullable: true}}",
            "contract.outputs.label.nullable: only floats can be missing (NaN), this is INT64",
        ),
        ("{label: {allowed: [a]}}", "contract.outputs.label.allowed: INT64 takes whole numbers of its size, not 'a'"),
        ("{name: {min: 3}}", "contract.outputs.name.min: only numbers have bounds, this is BYTES"),
        ("{risk: {max_length: 3}}", "contract.outputs.risk.max_length: no dim of [1] varies in length"),
        ("{risk: {min: 3, max: 2}}", "contract.outputs.risk: min 3 is above max 2; nothing would be accepted"),
        (
            "{probabilities: {columns: {'2': {}}}}",
            "contract.outputs.probabilities.columns.2: no such column; known are",
        ),
        ("{probabilities: {columns: {'0': {mx: 1}}}}", "contract.outputs.probabilities.columns.0.mx: no such key; did"),
    ],
)
def test_a_mistake_is_placed_and_explained(text, said):
    (found,) = mistakes(text)
    assert found.startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{label: {allowed: [0, 2]}}", "label: allowed contradicts 2 of the 3 recorded answers, such as 1 (they reach"),
        (
            "{label: {max: 0}}",
            "label: max 0 contradicts 2 of the 3 recorded answers, such as 1 (they reach from 0 to 1)",
        ),
        ("{probabilities: {max: 0.9}}", "probabilities.columns.1: max 0.9 contradicts 1 of the 3 recorded answers"),
        ("{probabilities: {columns: {'0': {min: 0.1}}}}", "probabilities.columns.0: min 0.1 contradicts 1 of the 3"),
        ("{name: {allowed: ['no']}}", "name: allowed contradicts 2 of the 3 recorded answers, such as 'yes'"),
        ("{name: {max_bytes: 2}}", "name: max_bytes 2 contradicts 2 of the 3 recorded answers, such as 'yes'"),
        ("{risk: {finite: true}}", "risk: not nullable: it contradicts 1 of the 3 recorded answers, such as nan"),
        ("{risk: {nullable: false}}", "risk: not nullable: it contradicts 1 of the 3 recorded answers, such as nan"),
        ("{scores: {max_length: 1}}", "scores: max_length 1 contradicts 1 of the 1 recorded answers, such as 2"),
        ("{X: {allowed: [true]}}", "X: allowed contradicts 1 of the 3 recorded answers, such as False"),
    ],
)
def test_what_the_recorded_answers_contradict_is_refused_with_their_number(text, said):
    (found,) = mistakes(text)
    assert found.startswith(f"contract.outputs.{said}")
    assert found.endswith("; the notebook's model gives them: widen the rule, or leave it out")


def test_without_answers_the_contract_itself_remembers_their_range():
    (found,) = mistakes("{risk: {min: 0}}", ())
    assert found.startswith("contract.outputs.risk: min 0 contradicts recorded answers, such as -2.0 (they reach from")


def test_mistakes_about_inputs_and_outputs_are_told_at_once():
    with pytest.raises(Refused) as no:
        apply(MADE, {"inputs": {"X": {"max": 1}}, "outputs": {"risk": {"max": 1}}, "outputz": {}}, ASKED, ANSWERS)
    assert [reason.split(":")[0] for reason in no.value.reasons] == [
        "contract.outputz",
        "contract.inputs.X",
        "contract.outputs.risk",
    ]
    assert "did you mean 'outputs'?" in no.value.reasons[0]


def made(name, *values):
    dtype = {f.name: f.spec.dtype for f in MADE.outputs}[name]
    asked = [{"X": Tensor("FP32", (len(values), 1), (0.0,) * len(values))}]
    return asked, [{name: Tensor(dtype, (len(values), 1), values)}]


@pytest.mark.parametrize(
    ("said", "answers", "wrong"),
    [
        ({"risk": {"max": 9}}, ("risk", 3.0, 10.0), "max 9 contradicts 1 of the 2 answers to made rows, such as 10.0"),
        ({"risk": {"infinite": False}}, ("risk", math.inf), "not infinite: it contradicts 1 of the 1 answers to made"),
        (
            {"label": {"allowed": [0, 1]}},
            ("label", 2),
            "allowed contradicts 1 of the 1 answers to made rows, such as 2",
        ),
        ({"risk": {"max": 9}}, ("risk", 9.0, math.nan, math.inf * -1), None),
        ({"risk": {}}, ("risk", math.inf), None),
        ({"label": {"min": 0}}, ("label", 7), None),
        ({"name": {"allowed": ["no", "yes"]}}, ("label", 7), None),
        # Longer than any text that was seen, but nobody has said anything about that.
        ({"name": {}}, ("name", "x" * 5000), None),
    ],
)
def test_the_answers_to_made_rows_are_held_against_what_was_said_and_nothing_else(said, answers, wrong):
    overrides = {"outputs": said}
    promised = apply(MADE, overrides, ASKED, ANSWERS)
    if wrong is None:
        hold(promised, overrides, *made(*answers))
        return
    with pytest.raises(Refused) as no:
        hold(promised, overrides, *made(*answers))
    (reason,) = no.value.reasons
    assert wrong in reason
    assert reason.endswith("callers can send such rows: widen the rule, or narrow contract.inputs")


def test_a_promise_changes_nothing_of_what_the_engine_is_told():
    promised = apply(MADE, {"outputs": {"risk": {"max": 9}, "label": {"allowed": [0, 1]}}}, ASKED, ANSWERS)
    assert config_pbtxt("m", promised) == config_pbtxt("m", MADE)
    assert Contract.from_json(promised.to_json()) == promised
