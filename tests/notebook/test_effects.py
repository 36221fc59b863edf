"""Effects of statements, checked against what running them does."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxiway.notebook.effects import RANDOM, effects, kills


def of(text):
    (statement,) = ast.parse(text).body
    return effects(statement)


@pytest.mark.parametrize(
    ("text", "defines", "uses", "changes"),
    [
        ("a = b + c", "a", "bc", ""),
        ("a, (b, *c) = d", "abc", "d", ""),
        ("a += b", "a", "ab", "a"),
        ("a[0] = b", "", "ab", "a"),
        ("a.b = c", "", "ac", "a"),
        ("a['x'] += 1", "", "a", "a"),
        ("a.fit(b)", "", "ab", "a"),
        ("a.head()", "", "a", ""),
        ("a.drop(b, inplace=True)", "", "ab", "a"),
        ("a.drop(b)", "", "ab", ""),
        ("f(a)", "", "af", "a"),
        ("print(a)", "", "a", ""),
        ("plt.plot(a)", "", ["a", "plt"], ""),
        ("x = [i for i in a if i > b]", "x", "ab", ""),
        ("x = lambda y: y + z", "x", "z", ""),
        ("def f(a, b=c):\n    d = a + e\n    return d", "f", "ce", ""),
        ("class K(b):\n    x = c\n    def m(self):\n        return d + self.x", "K", "bcd", ""),
        ("for i in a:\n    b.append(i)", "i", "abi", "b"),
        ("with a as b:\n    c = b", "bc", "ab", ""),
        ("import a.b as c", "c", "", ""),
        ("from a import b as c, d", "cd", "", ""),
        ("del a", "a", "", ""),
        ("if a:\n    b = 1\nelse:\n    c.fit(d)", "b", "acd", "c"),
    ],
)
def test_what_a_statement_does_to_names(text, defines, uses, changes):
    found = of(text)
    assert (set(found.defines), set(found.uses), set(found.changes)) == (set(defines), set(uses), set(changes))


def test_drawing_random_numbers_changes_the_random_state():
    assert RANDOM in of("x = np.random.normal(3)").changes
    assert RANDOM in of("np.random.seed(3)").changes
    assert RANDOM not in of("rng = np.random.default_rng(3)").changes


def test_only_what_happens_whatever_happens_makes_a_former_value_irrelevant():
    (whole, part, maybe) = ast.parse("a, b = 1, 2\nc[0] = 1\nif x:\n    d = 1").body
    assert kills(whole) == {"a", "b"}
    assert kills(part) == kills(maybe) == frozenset()


NAMES = st.sampled_from("abcd")
EXPRESSIONS = st.recursive(
    NAMES | st.integers(0, 9).map(str),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
        | inner.map(lambda e: f"sum([v for v in [{e}]])")
        | inner.map(lambda e: f"(lambda w: w + {e})(1)")
    ),
    max_leaves=4,
)
LINES = st.tuples(NAMES, EXPRESSIONS).map(lambda t: f"{t[0]} = {t[1]}")


class Watched(dict):
    """A namespace that notes what is read and what is set."""

    def __init__(self):
        super().__init__(a=1, b=2, c=3, d=4)
        self.read, self.set = set(), set()

    def __getitem__(self, name):
        value = super().__getitem__(name)
        self.read.add(name)
        return value

    def __setitem__(self, name, value):
        self.set.add(name)
        super().__setitem__(name, value)


@settings(max_examples=150)
@given(LINES)
def test_effects_of_straight_lines_are_what_running_them_does(line):
    found = of(line)
    names = Watched()
    # Names inside functions are looked up in globals, at the top level in locals: both are watched.
    plain = {"a": 1, "b": 2, "c": 3, "d": 4}
    exec(compile(line, "<line>", "exec"), plain, names)
    assert names.set == found.defines
    assert names.read <= found.uses
    tree = ast.parse(line.partition("=")[2].strip(), mode="eval")
    assert found.uses == {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - {"v", "w", "sum"}
