import pytest

from taxiway.notebook import findings, read
from tests.notebook.conftest import write


def found(tmp_path, *cells, counts=None):
    return [(f.kind, f.cell, f.line) for f in findings.findings(read.read(write(tmp_path, *cells, counts=counts)))]


@pytest.mark.parametrize(
    ("source", "kind", "line"),
    [
        ("x = 1\nprint(x)", "print", 2),
        ("display(df)", "print", 1),
        ("ax.hist(x)", "plot", 1),
        ("plt.show()", "plot", 1),
        ("import numpy as np\n\nnp.random.seed(1)", "global-seed", 3),
        ("random.seed(1)", "global-seed", 1),
        ("torch.manual_seed(0)", "global-seed", 1),
        ("p = '/home/anna/x.csv'", "absolute-path", 1),
        ("p = r'C:\\data\\x.csv'", "absolute-path", 1),
        ("p = '~/x.csv'", "absolute-path", 1),
        ("%matplotlib inline", "magic", 1),
        ("!ls", "magic", 1),
        ("x = !ls", "magic", 1),
        ("%%time\nx = 1", "magic", 1),
    ],
)
def test_what_does_not_belong_into_a_service_is_found_with_cell_and_line(tmp_path, source, kind, line):
    assert found(tmp_path, "y = 1", source) == [(kind, 2, line)]


@pytest.mark.parametrize(
    "source",
    [
        "rng = np.random.default_rng(1)",
        "logger.info('x')",
        "p = 'data/x.csv'",
        "p = '/'",
        "url = 'https://example.com/home/x'",
        "model.fit(X)",
        "# print(x)",
        "def broken(",
    ],
)
def test_what_is_harmless_is_not_found(tmp_path, source):
    assert found(tmp_path, source) == []


def test_cells_executed_out_of_order_are_found_once_each(tmp_path):
    assert found(tmp_path, "a", "b", "c", counts=[1, 5, 3]) == [("execution-order", 3, 1)]
    assert found(tmp_path, "a", "b", "c", counts=[1, None, 3]) == []
