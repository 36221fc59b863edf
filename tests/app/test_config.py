"""taxiway.yaml: every mistake is told, at its place, and never as a traceback."""

import dataclasses

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from taxiway.app import pages
from taxiway.app.config import explain, nodes, read
from taxiway.app.config.model import Config, Export, Parity, Serving
from taxiway.app.overrides import words
from taxiway.core.errors import Refused


def mistakes(tmp_path, text):
    path = tmp_path / "taxiway.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(Refused) as no:
        read.read(path)
    assert no.value.code == "bad-config"
    return [reason.replace(str(path), "f") for reason in no.value.reasons]


def test_what_is_said_goes_over_the_defaults(tmp_path):
    path = tmp_path / "taxiway.yaml"
    path.write_text("model: risk\nserving: {max_batch: 5}\ncontract: {inputs: {X: {finite: true}}}\n")
    assert read.read(path) == Config(
        model="risk", serving=Serving(max_batch=5), contract={"inputs": {"X": {"finite": True}}}
    )
    assert read.find(tmp_path / "n.ipynb") == path
    assert read.find(tmp_path / "else" / "n.ipynb") is None


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufeffmodel: risk\n", "---\n"])
def test_an_empty_file_means_the_defaults(tmp_path, text):
    path = tmp_path / "taxiway.yaml"
    path.write_text(text)
    assert read.read(path).serving == Serving()


BOUNDS = "expected a whole number from 1 to 4096"
DELAYS = "expected a whole number from 0 to 1000000"
ALLOWED = "expected a number from 0 to 0.1, or null"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: Risk", "f:1:8: model: expected text such as 'risk', 'churn-eu', got 'Risk'"),
        ("model:", "f:1:7: model: expected text such as 'risk', 'churn-eu', got nothing"),
        ("serving:\n  timeout_ms: a", "f:2:15: serving.timeout_ms: expected a whole number from 1 to 600000, got 'a'"),
        ("export: {opset: 99}", "f:1:17: export.opset: expected a whole number from 9 to 21, got 99"),
        ("serving: {max_batch: 1.5}", f"f:1:22: serving.max_batch: {BOUNDS}, got 1.5"),
        ("serving: {max_batch: 5.0}", f"f:1:22: serving.max_batch: {BOUNDS}, got 5.0"),
        ("serving: {max_batch: true}", f"f:1:22: serving.max_batch: {BOUNDS}, got true"),
        ("serving: {max_batch: '3'}", f"f:1:22: serving.max_batch: {BOUNDS}, got '3'; write 3, without quotes"),
        ("serving: {instances: 0}", "f:1:22: serving.instances: expected a whole number from 1 to 64, got 0"),
        ("serving: {instances: 65}", "f:1:22: serving.instances: expected a whole number from 1 to 64, got 65"),
        ("serving: {queue_delay_us: -1}", f"f:1:27: serving.queue_delay_us: {DELAYS}, got -1"),
        ("serving: {queue_delay_us: 1000001}", f"f:1:27: serving.queue_delay_us: {DELAYS}, got 1000001"),
        ("serving: {queue_delay_us: 0.5}", f"f:1:27: serving.queue_delay_us: {DELAYS}, got 0.5"),
        ("parity: {atol: -0.1}", f"f:1:16: parity.atol: {ALLOWED}, got -0.1"),
        ("parity: {atol: 0.11}", f"f:1:16: parity.atol: {ALLOWED}, got 0.11"),
        ("parity: {rtol: true}", f"f:1:16: parity.rtol: {ALLOWED}, got true"),
        ("parity: {rtol: 1e-3}", f"f:1:16: parity.rtol: {ALLOWED}, got '1e-3'; write 0.001, without quotes"),
        ("parity: {rtol: 1e-9}", f"f:1:16: parity.rtol: {ALLOWED}, got '1e-9'; write 1.0e-09, without quotes"),
        ("serving: 3", "f:1:10: serving: expected keys with values, got 3"),
        ("kernel: 3.11", "f:1:9: kernel: expected text such as 'churn', got 3.11; put it in quotes"),
        ('kernel: "a\\0"', "f:1:9: kernel: expected text such as 'churn', got 'a\\x00'"),
        ('model: "risk\\n"', "f:1:8: model: expected text such as 'risk', 'churn-eu', got 'risk\\n'"),
        ("python: a\nkernel: b", "f:1:1: python and kernel name the same thing; leave one of them out"),
    ],
)
def test_a_mistake_is_told_with_line_column_and_what_was_expected(tmp_path, text, said):
    assert mistakes(tmp_path, text) == [said]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("max: 1e3", "14: contract.inputs.X.max: expected a number, or null, got '1e3'; write 1000, without quotes"),
        ("max: nan", "14: contract.inputs.X.max: expected a number, or null, got 'nan'"),
        ("min: 5, max: 1", "14: contract.inputs.X: min 5 is above max 1; nothing would be accepted"),
        ("finite: 1", "17: contract.inputs.X.finite: expected true or false, got 1"),
        ("max_length: 0", "21: contract.inputs.X.max_length: expected a whole number of at least 1, got 0"),
        ("allowed: []", "18: contract.inputs.X.allowed: expected a list with something in it, or null, got []"),
        (
            "allowed: [a, [b]]",
            '22: contract.inputs.X.allowed[1]: expected text or a number or true or false, got ["b"]',
        ),
        (
            "finite: true, infinite: true",
            "8: contract.inputs.X: finite and infinite cannot both be true; leave one of them out",
        ),
    ],
)
def test_a_wrong_rule_of_the_contract_is_told_at_its_value(tmp_path, rules, said):
    assert mistakes(tmp_path, f"contract:\n  inputs:\n    X: {{{rules}}}") == [f"f:3:{said}"]
    outputs = said.replace("contract.inputs", "contract.outputs")
    assert mistakes(tmp_path, f"contract:\n  outputs:\n    X: {{{rules}}}") == [f"f:3:{outputs}"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("serving:\n  max_bach: 3", "f:2:3: serving: unknown key 'max_bach'; did you mean 'max_batch'?"),
        ("MODEL: x", "f:1:1: unknown key 'MODEL'; did you mean 'model'?"),
        ("max_batch: 3", "f:1:1: unknown key 'max_batch'; write it under serving, as serving.max_batch"),
        ("parity: {x: 3}", "f:1:10: parity: unknown key 'x'; known are atol, rows, rtol"),
        ("parity: {atoll: 0}", "f:1:10: parity: unknown key 'atoll'; did you mean 'atol'?"),
        ("serving: {instance: 3}", "f:1:11: serving: unknown key 'instance'; did you mean 'instances'?"),
        ("serving: {queue_delay: 3}", "f:1:11: serving: unknown key 'queue_delay'; did you mean 'queue_delay_us'?"),
        ("queue_delay_us: 3", "f:1:1: unknown key 'queue_delay_us'; write it under serving, as serving.queue_delay_us"),
        ("atol: 0", "f:1:1: unknown key 'atol'; write it under parity, as parity.atol"),
        ("contract: {output: {}}", "f:1:12: contract: unknown key 'output'; did you mean 'outputs'?"),
        (
            "contract: {outputs: {y: {maximum: 3}}}",
            "f:1:26: contract.outputs.y: unknown key 'maximum'; did you mean 'max'?",
        ),
        (
            "contract: {outputs: {p: {columns: {'1': {mx: 3}}}}}",
            "f:1:42: contract.outputs.p.columns.1: unknown key 'mx'; did you mean 'max'?",
        ),
        (
            "contract: {inputs: {X: {columns: {age: {mx: 3}}}}}",
            "f:1:41: contract.inputs.X.columns.age: unknown key 'mx'; did you mean 'max'?",
        ),
    ],
)
def test_an_unknown_key_is_told_with_what_was_meant(tmp_path, text, said):
    assert mistakes(tmp_path, text) == [said]


def test_a_request_must_outlast_its_wait_for_a_batch(tmp_path):
    lost = "a lone request waits 20 ms for others, but is given up after timeout_ms 20; nothing would be answered"
    assert mistakes(tmp_path, "serving: {timeout_ms: 20, queue_delay_us: 20000}") == [
        f"f:1:43: serving.queue_delay_us: {lost}"
    ]
    (tmp_path / "taxiway.yaml").write_text("serving: {timeout_ms: 20, queue_delay_us: 19999, instances: 64}")
    assert read.read(tmp_path / "taxiway.yaml").serving == Serving(timeout_ms=20, queue_delay_us=19999, instances=64)


@pytest.mark.parametrize("text", ["{queue_delay_us: 9, timeout_ms: 0}", "{queue_delay_us: 9, timeout_ms: x}", "[]"])
def test_a_wait_is_not_compared_with_what_is_no_time(tmp_path, text):
    assert not [m for m in mistakes(tmp_path, f"serving: {text}") if "queue_delay_us" in m]


@pytest.mark.parametrize("text", ["0", "0.1", "0.0", "1.0e-9", "null"])
def test_a_tolerance_is_a_number_or_left_to_the_proof(tmp_path, text):
    path = tmp_path / "taxiway.yaml"
    path.write_text(f"parity: {{atol: {text}}}")
    assert read.read(path).parity == Parity(atol=yaml.safe_load(text.replace("e-9", "e-09")))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_told_to_be_written_is_read_as_that_number(number):
    text = explain._written(explain._finite(repr(number)))
    assert nodes.parse(f"a: {text}").value == {"a": number}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: no", "f:1:8: model: YAML reads 'no' as false; write false, or quote it if it is text"),
        ("model: on", "f:1:8: model: YAML reads 'on' as true; write true, or quote it if it is text"),
        ("model: a\nmodel: b", "f:2:1: key 'model' stands here twice, first on line 1; leave one out"),
        (
            "parity: {rows: 010}",
            "f:1:16: parity.rows: YAML reads '010' as octal; leave out the leading zeros, or quote",
        ),
        ("parity: {rows: 0x10}", "f:1:16: parity.rows: write '0x10' as an ordinary whole number, or quote"),
        ("parity: {rows: 1:30}", "f:1:16: parity.rows: write '1:30' as an ordinary whole number, or quote"),
        ("parity: {rows: 1:30.5}", "f:1:16: parity.rows: write '1:30.5' as an ordinary number, or quote"),
        (f"parity: {{rows: {'9' * 5000}}}", "f:1:16: parity.rows: a number of 5000 digits is not accepted"),
        ("parity: {rows: .nan}", "f:1:16: parity.rows: .nan is no value for a configuration"),
        ("parity: {rows: 1.0e+999}", "f:1:16: parity.rows: '1.0e+999' is larger than any number can be"),
        ("parity: {rows: !!float ''}", "f:1:16: parity.rows: write '' as an ordinary number"),
        ("model: !!python/name:os.system", "f:1:8: model: the tag 'python/name:os.system' is not accepted"),
        ("parity: !!set {rows}", "f:1:9: parity: the tag 'set' is not accepted"),
        ("model: =", "f:1:8: model: YAML gives '=' a meaning of its own; quote it"),
        ('kernel: "\\ud83d"', "f:1:9: kernel: '\\ud83d' holds half a character"),
        ('contract: {inputs: {"\\ud83d": {}}}', "f:1:21: contract.inputs: '\\ud83d' holds half a character"),
        ("a: &a {b: 1}\n<<: *a", "f:2:1: merge keys"),
        ("? [a]\n: 1", "f:1:3: merge keys and keys that are no text"),
    ],
)
def test_what_yaml_makes_of_a_text_behind_the_writers_back_is_told(tmp_path, text, said):
    assert [m for m in mistakes(tmp_path, text) if m.startswith(said)]
    assert len([m for m in mistakes(tmp_path, text) if m.startswith(said.rpartition(":")[0])]) == 1


def test_names_are_text_whatever_yaml_takes_them_for(tmp_path):
    path = tmp_path / "taxiway.yaml"
    path.write_text("contract: {inputs: {no: {allowed: ['no', 2024-01-01]}, 010: {}, ~: {}, \"\\ud83d\\ude00\": {}}}")
    inputs = read.read(path).contract["inputs"]
    assert list(inputs) == ["no", "010", "~", "😀"]
    assert inputs["no"]["allowed"] == ["no", "2024-01-01"]


def test_an_alias_stands_for_what_it_names(tmp_path):
    path = tmp_path / "taxiway.yaml"
    path.write_text("contract:\n  inputs:\n    a: &rule {min: 0}\n    b: *rule\n")
    assert read.read(path).contract["inputs"] == {"a": {"min": 0}, "b": {"min": 0}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1", "f:1:1: expected keys with values, for instance model: risk"),
        ("model: [", "f:1:9: this is no YAML: "),
        ("serving:\n\tmax_batch: 1", "f:2:1: this is no YAML: found character '\\t'"),
        ("serving:\n\tmax_batch: 1", "indent with spaces"),
        ("a: 1\n---\nb: 2", "f:2:1: this is no YAML: but found another document; a configuration is one document"),
        ("a: &a [*a]", "f:1:4: too deep for a configuration"),
        (f"a: {'[' * 5000}", "f:1:23: too deep for a configuration"),
        ('# 1\nmodel: "\\UFFFFFFFF"', "f:2:11: this is no YAML: the number of a character"),
        ("# 1\nmodel: \x01", "f:2:8: this is no YAML: the character U+0001 is not allowed"),
        (b"# 1\nmodel: \xff", "f:2:8: byte 0xff is not UTF-8"),
        ("x: " + "y" * (1 << 20), "f is larger than 1 MB"),
    ],
)
def test_what_is_no_configuration_at_all_is_refused(tmp_path, text, said):
    (mistake,) = mistakes(tmp_path, text)
    assert said in mistake


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match=r"none\.yaml cannot be read: No such file"):
        read.read(tmp_path / "none.yaml")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path):
    text = "modell: risk\nserving:\n  max_batch: 010\n  timeout_ms: no\nexport:\n  opset: x\nexport: {opset: y}\n"
    places = [m.split(": ")[0] for m in mistakes(tmp_path, text)]
    assert places == ["f:1:1", "f:3:14", "f:4:15", "f:7:1", "f:7:17"]


def test_a_column_may_have_any_name_and_mistakes_keep_their_places(tmp_path):
    text = "contract:\n  inputs:\n    X:\n      columns: {value: {min: a}, min: 3}\n"
    assert [m.split(": ")[0] for m in mistakes(tmp_path, text)] == ["f:4:30", "f:4:39"]


def test_what_turns_out_wrong_later_is_told_with_its_place(tmp_path):
    path = tmp_path / "taxiway.yaml"
    path.write_text(
        """contract:
  outputs:
    y: {min: 3}
    "a: b.c":
      columns:
        age: {max: 1}
  inputs: {y: {}}
"""
    )
    config = read.read(path)
    for reason, place in {
        "contract.outputs.y.min: expected": "3:9",
        "contract.outputs.y: min 3 contradicts 1": "3:5",
        "contract.outputs.y.columns.age: no such": "3:5",
        "contract.outputs.yy: no such output": "2:3",
        "contract.outputs.a: b.c.columns.age.max: expected": "6:15",
        "contract.outputs.a: b.c.allowed: expected": "4:5",
        "contract.inputs.y: no such input": "7:12",
    }.items():
        assert config.placed(reason) == f"{path}:{place}: {reason}"
    assert config.placed("clf@3: the exported model") == "clf@3: the exported model"
    assert Config().placed("contract.inputs.y: no such") == "contract.inputs.y: no such"


def test_very_many_mistakes_are_counted_rather_than_told(tmp_path):
    told = mistakes(tmp_path, "\n".join(f"key{i}: 1" for i in range(150)))
    assert len(told) == 101
    assert told[-1] == "f: and 50 more mistakes"


@pytest.mark.parametrize("inside", ["[{}]", "{{a: {}}}", "{{k: {}}}"])
def test_many_aliases_are_no_bomb(tmp_path, inside):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 9):
        ten = [f"*a{i - 1}"] * 10
        body = f"[{', '.join(ten)}]" if inside == "[{}]" else f"{{{', '.join(f'k: {a}' for a in ten)}}}"
        lines.append(f"a{i}: &a{i} {body}")
    (mistake,) = mistakes(tmp_path, "\n".join(lines))
    assert "too large for a configuration" in mistake


YAML = st.text(alphabet=st.sampled_from("abmodel:-[]{}&*!|>#'\"\n 0123.,?%@~<\t\\xuU=é😀"), max_size=60)
KEYS = st.sampled_from(["model", "python", "kernel", "export", "opset", "serving", "contract", "inputs", "X", "min"])
WORDS = st.one_of(
    st.sampled_from(["no", "~", "010", "1:30", ".inf", "1e3", "!!float ''", "!!int +", "!!set {}", "<<", "*a", "&a b"]),
    st.text(max_size=8),
    st.floats().map(str),
    st.integers().map(str),
)
TREES = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.lists(st.tuples(KEYS, inner), max_size=3).map(
            lambda parts: f"{{{', '.join(f'{key}: {value}' for key, value in parts)}}}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(YAML, TREES, st.binary(max_size=30)))
def test_any_text_is_a_configuration_or_a_refusal(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        found = read.read(path)
    except Refused as no:
        found = no
    assert isinstance(found, Config) or found.code == "bad-config"
    assert all(reason.startswith(str(path)) for reason in getattr(found, "reasons", ()))


def test_the_defaults_written_out_are_the_defaults(tmp_path):
    path = tmp_path / "taxiway.yaml"
    said = {k: v for k, v in dataclasses.asdict(Config()).items() if v is not None}
    path.write_text(yaml.safe_dump(said))
    assert read.read(path) == Config()


def test_the_schema_and_the_value_have_the_same_keys_and_defaults():
    schema = read.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {f.name for f in dataclasses.fields(Config) if f.compare}
    for name, kind in {"export": Export, "parity": Parity, "serving": Serving}.items():
        keys = schema["properties"][name]["properties"]
        assert {k: v["default"] for k, v in keys.items()} == dataclasses.asdict(kind())


def test_the_example_of_the_page_is_a_configuration(tmp_path):
    example = pages.configuration().split("```yaml\n")[1].split("```")[0]
    (tmp_path / "taxiway.yaml").write_text(example)
    assert read.read(tmp_path / "taxiway.yaml").model == "churn"


def _keys(part):
    """Every part of a schema that describes a value with a name."""
    for inner in (*part.get("properties", {}).values(), *part.get("$defs", {}).values()):
        yield inner
        yield from _keys(inner)


def test_every_key_is_described_and_its_examples_are_right():
    for part in _keys(read.schema()):
        assert part["description"].endswith(".")
        for example in part.get("examples", []):
            jsonschema.validate(example, part)


def test_the_schema_and_the_overrides_know_the_same_rules():
    known = read.schema()["$defs"]
    tensor, column = words.TENSOR_KEYS, words.COLUMN_KEYS
    for name, kinds in {"tensor": tensor, "output": tensor, "column": column, "output_column": column}.items():
        keys = known[name]["properties"]
        assert set(keys) == set(kinds)
        for key, part in keys.items():
            assert kinds[key][1](None) == ("null" in part["type"]), f"{name}.{key}: is null accepted?"
