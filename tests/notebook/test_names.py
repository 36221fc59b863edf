"""Names of statements, and undefined names: the truth comes from running generated programs."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxiway.notebook import findings, read
from taxiway.notebook.names import bindings, names
from tests.notebook.conftest import write


def of(text):
    (statement,) = ast.parse(text).body
    return names(statement)


@pytest.mark.parametrize(
    ("text", "now", "later", "bound"),
    [
        ("a = b + c", "bc", "", "a"),
        ("a += b", "ab", "", "a"),
        ("a[b] = c", "abc", "", ""),
        ("a.b = c", "ac", "", ""),
        ("def f(a, b=c):\n    d = a\n    return d + e", "c", "e", "f"),
        ("@d\ndef f(x: t) -> r:\n    pass", "drt", "", "f"),
        ("def f():\n    def g():\n        return h + x\n    x = 1\n    return g", "", "h", "f"),
        ("def f():\n    global m\n    m = n", "", "n", "f"),
        ("class A(b):\n    c = d\n    e = c\n    def m(self, x=c):\n        return f + c", "bd", "cf", "A"),
        ("x = lambda y: y + z", "", "z", "x"),
        ("x = f(lambda y: y + z)", "fz", "z", "x"),
        ("x = [i + j for i in a for k in i if k]", "aj", "", "x"),
        ("x = {i: j for i, j in a.items()}", "a", "", "x"),
        ("x = [y := i for i in a]", "a", "", "xy"),
        ("for i in a:\n    b = i\n    c(b)", "ac", "", "bi"),
        ("with a as (b, c):\n    d(b)", "ad", "", "bc"),
        ("try:\n    a\nexcept b as c:\n    d = c", "ab", "", "cd"),
        ("import a.b, c as d", "", "", "ad"),
        ("match a:\n    case [b, *c]:\n        d = b\n    case {'k': e, **f}:\n        pass", "a", "", "bcdef"),
        ("x: t = v", "tv", "", "x"),
        ("print(f'{a!r:>{b}}')", ["a", "b", "print"], "", ""),
    ],
)
def test_what_is_read_at_once_what_later_and_what_is_bound(text, now, later, bound):
    found = of(text)
    assert (set(found.now), found.later, found.bound) == (set(now), set(later), set(bound))


def test_what_is_called_or_handed_to_a_call_is_called():
    assert of("f(g, key=h, x=[i])").called == {"f", "g", "h"}
    assert of("x = f").called == set()


def test_a_deleted_name_is_read_and_gone():
    found = of("del a")
    assert (set(found.now), found.unbound) == ({"a"}, {"a"})


def test_inner_scopes_bind_nothing_outside():
    body = ast.parse("def f():\n    a = 1\nclass C:\n    b = 1\n[c for c in d]\nlambda e: e").body
    assert set(bindings(body)) == {"f", "C"}


# --- programs ----------------------------------------------------------------------------------------------------

NAMES = st.sampled_from("abcd")
FUNCTIONS = st.sampled_from("fgh")
PLAIN = st.one_of(
    st.builds("{} = 1".format, NAMES),
    st.builds("{0} = {1}".format, NAMES, NAMES),
    st.builds("{} += 1".format, NAMES),
    st.builds("del {}".format, NAMES),
    st.builds("{0} = [{1} for {2} in range(2)][0]".format, NAMES, NAMES, NAMES),
    st.builds("{0} = (lambda {1}: {2})(1)".format, NAMES, NAMES, NAMES),
    st.builds("def {0}():\n    return {1}".format, FUNCTIONS, NAMES),
    st.builds("def {0}({1}=1):\n    {2} = {1}\n    return {2}".format, FUNCTIONS, NAMES, NAMES),
    st.builds("def {0}(x={1}):\n    return x".format, FUNCTIONS, NAMES),
    st.builds("def {0}():\n    return {1}()".format, FUNCTIONS, FUNCTIONS),
    st.builds("class {0}:\n    {1} = 1\n    def m(self):\n        return {1}".format, st.sampled_from("KL"), NAMES),
    st.builds("{}().m()".format, st.sampled_from("KL")),
    st.builds("{0} = {1}()".format, NAMES, FUNCTIONS),
)


def fails_on(statements):
    """(place, name) of the first NameError of a run, or None; the run ends there."""
    space = {}
    for place, text in enumerate(statements, 1):
        try:
            exec(text, space)
        except NameError as error:
            return place, error.name
        except (RecursionError, TypeError, AttributeError):
            return "other"
    return None


@settings(max_examples=400, deadline=None)
@given(statements=st.lists(PLAIN, min_size=1, max_size=10))
def test_a_name_is_called_undefined_where_a_run_fails_and_nowhere_before(tmp_path_factory, statements):
    truth = fails_on(statements)
    if truth == "other":
        return
    path = write(tmp_path_factory.mktemp("p"), *statements)
    said = [(f.cell, f.message.split("'")[1]) for f in findings.findings(read.read(path)) if f.kind == "undefined-name"]
    if truth is None:
        assert said == []
    else:
        # A statement can read several names that are not there; which comes first is up to the run.
        assert said[0][0] == truth[0]
        assert truth in said


# --- what nobody can know ----------------------------------------------------------------------------------------


def undefined(tmp_path, *cells):
    path = write(tmp_path, *cells)
    return [f.message for f in findings.findings(read.read(path)) if f.kind == "undefined-name"]


@pytest.mark.parametrize(
    "first",
    [
        "%%time\nx = 1",
        "%%capture said\nx = 1",
        "%time x = 1",
        "%run other.ipynb",
        "%pylab inline",
        "%store -r x",
        "from other import *",
        "exec('x = 1')",
        "globals()['x'] = 1",
        "%%sql x <<\nselect 1",
        "def broken(:\nx = 1",
        "try:\n    x\nexcept NameError:\n    x = 1",
        "if ready():\n    x = 1",
    ],
)
def test_names_that_may_come_from_what_cannot_be_read_are_not_called_undefined(tmp_path, first):
    assert undefined(tmp_path, "def ready():\n    return True", first, "y = x") == []


@pytest.mark.parametrize(
    "cells",
    [
        ["class A:\n    def m(self):\n        return helper()", "def helper():\n    return 1", "A().m()"],
        ["table = {'a': lambda x: helper(x)}", "def helper(x):\n    return x"],
        ["def a():\n    return b()", "def b():\n    return 1", "a()"],
        ["%%capture said\nprint(1)", "said.show()"],
    ],
)
def test_what_is_needed_only_later_may_be_defined_later(tmp_path, cells):
    assert undefined(tmp_path, *cells) == []


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        (["df = 1", "df.apply(lambda r: helper(r))", "def helper(r):\n    return r"], "helper"),
        (["def a():\n    return b()", "def b():\n    return late", "a()", "late = 1"], "late"),
        (["def f(x=late):\n    return x", "late = 1"], "late"),
        (["class A(Base):\n    pass", "class Base:\n    pass"], "Base"),
        (["for i in xrange(3):\n    pass"], "xrange"),
        (["%time y = x"], "x"),
    ],
)
def test_what_is_needed_at_once_must_be_there(tmp_path, cells, name):
    assert [m.split("'")[1] for m in undefined(tmp_path, *cells)] == [name]


def test_a_builtin_of_python_2_is_told_with_its_successor(tmp_path):
    assert undefined(tmp_path, "xrange(3)") == ["'xrange' is Python 2's; now it is range"]
