"""taxiway.yaml: every mistake is told, at its place, and never as a traceback."""

import dataclasses

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxiway.app import pages
from taxiway.app.config import read
from taxiway.app.config.model import Config, Export, Parity, Serving
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: Risk", "f:1:8: model: expected text such as 'risk', 'churn-eu', got \"Risk\""),
        ("serving:\n  max_bach: 3", "f:2:3: serving: unknown key 'max_bach'; did you mean 'max_batch'?"),
        ("serving:\n  timeout_ms: a", 'f:2:15: serving.timeout_ms: expected a whole number from 1 to 600000, got "a"'),
        ("export: {opset: 99}", "f:1:17: export.opset: expected a whole number from 9 to 21, got 99"),
        ("serving: 3", "f:1:10: serving: expected keys with values, got 3"),
        ("model: no", "f:1:8: YAML takes 'no' for true or false; quote it, or write that"),
        ("model: a\nmodel: b", "f:2:1: key 'model' stands here twice"),
        ("serving: {max_batch: 010}", "f:1:22: '010' would be read as octal; leave out the zeros, or quote it"),
        ("serving: {max_batch: 0x10}", "f:1:22: write '0x10' as an ordinary whole number, or quote it"),
        ("serving: {max_batch: 1.5}", "f:1:22: serving.max_batch: expected a whole number from 1 to 4096, got 1.5"),
        ("- 1", "f:1:1: expected keys with values, for instance model: risk"),
        ("model: !!python/name:os.system", "f:1:8: 'os.system' values are not accepted"),
        (
            "contract: {inputs: {X: {columns: {age: {mx: 3}}}}}",
            "f:1:41: contract.inputs.X.columns.age: unknown key 'mx'; did you mean 'max'?",
        ),
        (
            "contract: {inputs: {X: {allowed: []}}}",
            "f:1:34: contract.inputs.X.allowed: expected a list or nothing with something in it, got []",
        ),
    ],
)
def test_a_mistake_is_told_with_line_column_and_what_was_expected(tmp_path, text, said):
    assert mistakes(tmp_path, text) == [said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: [", "this is no YAML"),
        ("\tmodel: x", "cannot start any token"),
        ("a: 1\n---\nb: 2", "another document"),
        ("&a [*a]", "this is no YAML"),
        (b"model: \xff", "not UTF-8"),
        ("x: " + "y" * (1 << 20), "larger than 1 MB"),
        ("a: &a {b: 1}\nc: {<<: *a}", "merge keys"),
    ],
)
def test_what_is_no_configuration_at_all_is_refused(tmp_path, text, said):
    assert said in "\n".join(mistakes(tmp_path, text))


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path):
    text = "modell: risk\nserving:\n  max_batch: 0\nexport:\n  opset: x\n"
    assert [m.split(": ")[0] for m in mistakes(tmp_path, text)] == ["f:1:1", "f:3:14", "f:5:10"]


def test_many_aliases_are_no_bomb(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "too deep or too large" in "\n".join(mistakes(tmp_path, "\n".join(lines)))


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("abmodel:-[]{}&*!|>#'\"\n 0123.,?%@~<\t"), max_size=60))
def test_any_text_is_a_configuration_or_a_refusal(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("c") / "taxiway.yaml"
    path.write_text(text)
    try:
        assert isinstance(read.read(path), Config)
    except Refused as no:
        assert no.code == "bad-config"  # noqa: PT017


def test_the_schema_and_the_value_have_the_same_keys_and_defaults():
    schema = read.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {f.name for f in dataclasses.fields(Config)}
    for name, kind in {"export": Export, "parity": Parity, "serving": Serving}.items():
        keys = schema["properties"][name]["properties"]
        assert {k: v["default"] for k, v in keys.items()} == dataclasses.asdict(kind())


def test_the_example_of_the_page_is_a_configuration(tmp_path):
    example = pages.configuration().split("```yaml\n")[1].split("```")[0]
    (tmp_path / "taxiway.yaml").write_text(example)
    assert read.read(tmp_path / "taxiway.yaml").model == "churn"
