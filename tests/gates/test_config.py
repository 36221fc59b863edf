"""The text of a configuration: all mistakes at once, the rest understood, and what protobuf writes read alike."""

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2 as pb

from taxiway.gates import config
from tests.gates.repositories import CONFIG, GOOD, found, texts, with_config


def read(*changes):
    text = CONFIG
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return config.read(text, "c")


def said(result):
    return [str(m) for m in result.mistakes]


def test_a_misspelt_key_is_read_as_the_one_that_was_meant():
    result = read(("max_batch_size", "max_bach_size"))
    assert len(result.mistakes) == 1
    assert result.config.max_batch_size == 8


def test_a_mistake_in_the_text_does_not_hide_those_in_its_meaning():
    mistakes = texts(with_config(("max_batch_size", "max_bach_size"), ('"Y"', '"Q"'), ("KIND_AUTO", "KIND_GPU")))
    for part in ("unknown key 'max_bach_size'", "the model has no output 'Q'", "KIND_GPU fails to load"):
        assert any(part in m for m in mistakes), (part, mistakes)


@pytest.mark.parametrize(
    "change",
    [
        ("max_batch_size: 8", "max_batch_size: many"),
        ('name: "X" data_type: TYPE_FP32', 'name: "X" data_type: TYPE_FLOAT'),
        ('name: "X"', "name: X"),
        ("dims: [ 3 ] } ]\noutput", "dims: [ three ] } ]\noutput"),
        ('platform: "onnxruntime_onnx"', "platform: onnxruntime_onnx"),
        ("instance_group [ { count: 1 kind: KIND_AUTO } ]", "instance_group [ 1 ]"),
        ("max_batch_size: 8", "max_batch_size: 99999999999"),
        ("max_batch_size: 8", "max_batch_size: [ 8 ]"),
        ('name: "m"', 'name "m"'),
        ('name: "m"', 'bogus_thing: { a: [ 1, { b: 2 } ] }\nname: "m"'),
    ],
)
def test_what_was_not_understood_makes_one_mistake_and_no_others(change):
    assert len(texts(with_config(change))) == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("dims: [ 3 ] } ]\noutput", "dims: [ 3  } ]\noutput"), "c:4:53: error: ']' is missing before '}'"),
        (("dims: [ 3 ] } ]\noutput", "dims: [ 3 ]  ]\noutput"), "c:4:55: error: '}' is missing before ']'"),
        (("dims: [ 3 ] } ]\noutput", "dims: [ 3 ] }\noutput"), "c:5:1: error: ']' is missing before 'output'"),
        (("dims: [ 3 ] } ]\noutput", "dims: [ 3 ]\noutput"), "c:5:1: error: '}' is missing before 'output'"),
    ],
)
def test_a_bracket_that_is_missing_is_told_once_and_the_rest_is_read(change, expected):
    result = read(change)
    assert said(result) == [expected]
    assert result.config == config.read(CONFIG, "c").config


def test_types_under_their_names_elsewhere_are_told_by_triton_s():
    (first, *_) = said(read(("TYPE_FP32", "TYPE_FLOAT")))
    assert "did you mean TYPE_FP32?" in first
    assert "did you mean TYPE_STRING?" in said(read(("TYPE_FP32", "BYTES")))[0]


def test_texts_side_by_side_are_one_and_a_mark_of_the_editor_is_none():
    result = config.read("\ufeff" + CONFIG + 'parameters { key: "a" value: { string_value: "x" \'y\' } }', "c")
    assert said(result) == []
    assert result.config.parameters["a"].string_value == "xy"


def test_a_file_that_is_not_utf_8_is_told_where():
    files = GOOD | {"m/config.pbtxt": CONFIG.encode() + b"# caf\xe9\n"}
    assert "m/config.pbtxt:8:6: error: this is not UTF-8; save the file as UTF-8" in texts(files)


def test_a_mistake_that_only_protobuf_sees_is_told_in_its_place():
    text = CONFIG + "version_policy { all { } latest { num_versions: 1 } }\n"
    assert [m.line for m in config.read(text, "c").mistakes] == [8]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_text_can_be_read_as_a_configuration(data):
    text = list(CONFIG)
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.sampled_from(['"', "{", "}", "[", "]", ":", "x", "7", "\n", "#", ""]))
    written = "".join(text)
    result = config.read(written, "c")
    # Without a mistake is what protobuf's own parser accepts, and nothing else.
    try:
        assert text_format.Parse(written, pb.ModelConfig()) == result.config
        assert result.mistakes == []
    except text_format.ParseError:
        assert result.mistakes
    lines = written.split("\n")
    for mistake in result.mistakes:
        assert 1 <= mistake.line <= len(lines)
        assert 1 <= mistake.column <= len(lines[mistake.line - 1]) + 1
    found(GOOD | {"m/config.pbtxt": written.encode()})


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.binary(max_size=300), st.text(max_size=200).map(str.encode)))
def test_any_bytes_can_be_a_configuration(data):
    found(GOOD | {"m/config.pbtxt": data})


@settings(max_examples=100, deadline=None)
@given(
    count=st.integers(0, 4),
    dims=st.lists(st.integers(-1, 9), max_size=3),
    delay=st.integers(0, 10**6),
    text=st.text(max_size=12),
    ragged=st.booleans(),
    single=st.booleans(),
)
def test_whatever_protobuf_writes_is_read_without_a_mistake_and_in_its_place(count, dims, delay, text, ragged, single):
    made = pb.ModelConfig(name=text, max_batch_size=count)
    for i in range(count):
        made.input.add(name=f"{text}{i}", data_type=i + 1, dims=dims, allow_ragged_batch=ragged)
    made.dynamic_batching.max_queue_delay_microseconds = delay
    made.parameters["k\"'"].string_value = text
    made.model_warmup.add().inputs["a"].random_data = True
    written = text_format.MessageToString(made, as_one_line=single)
    result = config.read(written, "c")
    assert result.mistakes == []
    assert result.config == made
    lines = written.split("\n")
    for path, (line, column) in result.places.items():
        key = path.rpartition(".")[2]
        if not key.endswith("]"):
            assert lines[line - 1][column - 1 :].startswith(key), path
