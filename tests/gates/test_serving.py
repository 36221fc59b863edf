"""What a configuration says: each mistake with its place, and the same thing done right beside it."""

# ruff: noqa: E501 - tables of cases are read line by line

import pytest

from taxiway.core.contract import Contract, Field
from taxiway.core.tensor import TensorSpec
from taxiway.gates.mistake import Machine
from tests.gates.repositories import CONFIG, GOOD, contract, texts, with_config

STEP = 'ensemble_scheduling { step [ { model_name: "%s" model_version: -1 } ] }\n'
WARM = 'model_warmup [ { name: "w" batch_size: %d inputs { key: "X" value { data_type: %s dims: [ %s ] zero_data: true } } } ]'
GROUPS = "instance_group [ { count: 1 kind: KIND_AUTO } ]"


def added(line):
    return GOOD | {"m/config.pbtxt": (CONFIG + line + "\n").encode()}


def warm(batch=8, dtype="TYPE_FP32", dims="3"):
    return texts(added(WARM % (batch, dtype, dims)))


def test_a_warm_up_must_be_a_request_that_the_model_takes():
    assert warm() == []
    assert "warm-up sends 9 rows, above max_batch_size 8" in warm(batch=9)[0]
    assert "warm-up sends 'X' as TYPE_INT64, the input is TYPE_FP32" in warm(dtype="TYPE_INT64")[0]
    assert "warm-up sends 'X' of [4], the input is [3]" in warm(dims="4")[0]
    assert "warm-up sends 'X' of [-1], the input is [3]" in warm(dims="-1")[0]
    assert "warm-up does not send input 'X'" in texts(added('model_warmup [ { name: "w" batch_size: 1 } ]'))[0]


def test_a_warm_up_may_choose_any_length_where_the_model_does():
    text = CONFIG.replace("dims: [ 3 ]", "dims: [ -1 ]") + WARM % (1, "TYPE_FP32", "5")
    assert texts(GOOD | {"m/config.pbtxt": text.encode()}) == []


@pytest.mark.parametrize(
    ("batching", "said"),
    [
        ("priority_levels: 2 default_priority_level: 1", "a queue of priorities stalls"),
        ("priority_queue_policy { key: 1 value { max_queue_size: 3 } }", "a queue policy stalls"),
        ("preferred_batch_size: [ 0 ]", "preferred_batch_size 0 must be positive"),
        ("preferred_batch_size: [ 4, 8 ]", None),
        ("max_queue_delay_microseconds: 10000", None),
    ],
)
def test_batching_is_judged_by_what_it_costs(batching, said):
    mistakes = texts(with_config(("dynamic_batching { }", f"dynamic_batching {{ {batching} }}")))
    assert len(mistakes) == (said is not None)
    assert all(m.startswith("m/config.pbtxt:7:20:") and said in m for m in mistakes)


@pytest.mark.parametrize(
    ("delay_us", "timeout_ms", "said"),
    [
        (
            10_000,
            10,
            "error: a lone request waits 10 ms for others, but is given up after 10 ms: lower the delay, or raise",
        ),
        (60_000, 10, "error: a lone request waits 60 ms for others, but is given up after 10 ms"),
        (9_999, 10, "warning: every request may wait 9.999 of the 10 ms that it has; under load"),
        (1_001, 10, "warning: every request may wait 1.001 of the 10 ms that it has; under load"),
        (1_000, 10, None),
        (10_000, 100, None),
        (10_001, 1_000, "warning: every request may wait 10.001 ms; under load"),
        (10_001, None, "warning: every request may wait 10.001 ms; under load"),
        (10_000, None, None),
        (0, 1, None),
    ],
)
def test_a_wait_for_a_batch_is_held_against_the_time_that_a_request_has(delay_us, timeout_ms, said):
    batching = f"dynamic_batching {{ max_queue_delay_microseconds: {delay_us} }}"
    mistakes = texts(with_config(("dynamic_batching { }", batching)), timeout_ms=timeout_ms)
    assert len(mistakes) == (said is not None)
    assert all(m.startswith("m/config.pbtxt:7:20: ") and said in m for m in mistakes)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('platform: "onnxruntime_onnx"', 'platform: "onnxruntime_onnx" backend: "onnxruntime"', None),
        ('platform: "onnxruntime_onnx"', 'backend: "onnxruntime"', None),
        ('platform: "onnxruntime_onnx"', 'platform: "pytorch_libtorch" backend: "onnxruntime"', "is not for backend"),
        ("max_batch_size: 8", 'max_batch_size: 8 default_model_filename: "model.onnx"', None),
        ("max_batch_size: 8", 'max_batch_size: 8 default_model_filename: "../x.onnx"', "must be a name in the version's"),
        ('name: "Y"', 'name: ""', "this output has no name"),
        (" data_type: TYPE_FP32 dims: [ 3 ] } ]\noutput", " dims: [ 3 ] } ]\noutput", "input 'X' has no data_type"),
        ("max_batch_size: 8", "max_batch_size: -1", "max_batch_size is -1"),
        ("dynamic_batching { }", 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/x" } }', "one machine"),
        ("dynamic_batching { }", 'parameters { key: "other" value { string_value: "/x" } }', None),
        ("dynamic_batching { }", "version_policy { specific { versions: [ 1 ] } }", None),
        ("dynamic_batching { }", "response_cache { enable: false }", None),
        ('{ name: "X" data_type', '{ name: "X" data_type: TYPE_FP32 dims: [ 3 ] }, { name: "X" data_type', "here twice"),
    ],
)  # fmt: skip
def test_what_a_server_would_guess_or_refuse_is_told(before, after, said):
    mistakes = texts(with_config((before, after)))
    assert any(said in m for m in mistakes) if said else mistakes == []


def test_an_ensemble_joins_models_of_its_own_repository():
    text = (
        'platform: "ensemble"\nmax_batch_size: 8\n' + CONFIG.partition("\n")[2].split("\n", 2)[2].split("instance")[0]
    )
    files = GOOD | {"both/config.pbtxt": (text + STEP % "m").encode(), "both/1/.keep": b""}
    assert texts(files) == []
    files["both/config.pbtxt"] = (text + STEP % "n").encode()
    assert texts(files) == [
        "both/config.pbtxt:5:32: error: the ensemble's step 'n' is no model of this repository",
    ]
    files["both/config.pbtxt"] = text.encode()
    assert "an ensemble needs ensemble_scheduling" in texts(files)[0]


def test_instances_are_counted_over_all_groups():
    two = "instance_group [ { count: 2 kind: KIND_CPU }, { count: 3 kind: KIND_CPU } ]"
    files = with_config((GROUPS, two))
    assert "5 instances share 4 cores" in texts(files, machine=Machine(cores=4))[0]
    assert texts(files, machine=Machine(cores=5)) == []


def test_instances_on_a_gpu_do_not_share_the_processor():
    files = with_config((GROUPS, "instance_group [ { count: 9 kind: KIND_GPU } ]"))
    assert texts(files, machine=Machine(cores=2, gpu=True)) == []


def test_a_model_that_fits_into_memory_is_judged_with_its_reserve():
    assert texts(GOOD, machine=Machine(memory=151 << 20)) == []
    assert "1 instances need about 150 MB, 149 MB are free" in texts(GOOD, machine=Machine(memory=149 << 20))[0]


def promised(dtype="FP32", dims=(3,), out="Y", max_batch=8):
    return Contract((Field(TensorSpec("X", dtype, dims)),), (Field(TensorSpec(out, "FP32", (3,))),), max_batch)


@pytest.mark.parametrize(
    ("given", "place", "said"),
    [
        (promised("FP64"), "4:21", "input 'X' is TYPE_FP32, the contract says TYPE_FP64"),
        (promised("BYTES"), "4:21", "input 'X' is TYPE_FP32, the contract says TYPE_STRING"),
        (promised(dims=(4,)), "4:42", "input 'X' has dims [3], the contract says [4]"),
        (promised(dims=()), "4:42", "input 'X' has dims [3], the contract says [1]"),
        (promised(out="Z"), "5:12", "output 'Y' is not in the contract"),
        (promised(out="Z"), "5:1", "output 'Z' is in the contract, not in the configuration"),
        (promised(max_batch=4), "3:1", "max_batch_size is 8, the contract says 4"),
    ],
    ids=range(7),
)
def test_a_contract_is_held_against_the_configuration_both_ways(given, place, said):
    assert f"m/config.pbtxt:{place}: error: {said}" in texts(GOOD, contract=given)


def test_a_contract_that_agrees_has_no_mistake():
    assert texts(GOOD, contract=promised()) == []
    assert texts(GOOD, contract=contract(8)) == []


def test_a_value_a_row_is_reshaped_for_the_model():
    files = with_config(
        (
            'name: "X" data_type: TYPE_FP32 dims: [ 3 ]',
            'name: "X" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ 3 ] }',
        )
    )
    assert texts(files) == []
    files = with_config(
        (
            'name: "X" data_type: TYPE_FP32 dims: [ 3 ]',
            'name: "X" data_type: TYPE_FP32 dims: [ 3 ] reshape { shape: [ ] }',
        )
    )
    assert "m/config.pbtxt:4:54: error: input 'X' is [-1, 3] in the model, but [-1] as configured" in texts(files)
