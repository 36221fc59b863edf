"""How fast `taxiway check` reads notebooks: python benchmarks/check.py [--quick]

Makes notebooks (a mixture of what people write: imports, magics, plots, data frames, models), checks each several
times without running it, and prints the medians as JSON on the last line: seconds for one notebook of 200 cells, and
notebooks of 20 cells per second.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import nbformat

from taxiway.notebook import findings, read

CELLS = (
    "%matplotlib inline\nimport numpy as np\nimport pandas as pd\nimport matplotlib.pyplot as plt",
    "df{i} = pd.read_csv('data/{i}.csv')\ndf{i}.head()",
    "df{i} = df{i}.dropna()\ndf{i}['ratio'] = df{i}['a'] / df{i}['b']\ndf{i}.describe()",
    "fig, ax = plt.subplots()\nax.hist(df{i}['ratio'], bins=30)\nax.set_title('ratio {i}')\nplt.show()",
    "def clean{i}(table, limit=3):\n    kept = table[table['a'] < limit]\n    return kept.assign(c=kept['a'] * 2)",
    "X{i} = clean{i}(df{i})[['a', 'b', 'c']].to_numpy()\ny{i} = (X{i}[:, 0] > 1).astype(int)",
    "from sklearn.linear_model import LogisticRegression\nfrom sklearn.preprocessing import StandardScaler\n"
    "scaler{i} = StandardScaler().fit(X{i})",
    "model{i} = LogisticRegression(C=0.{i})\nmodel{i}.fit(scaler{i}.transform(X{i}), y{i})",
    "print('accuracy', model{i}.score(scaler{i}.transform(X{i}), y{i}))",
    "results = [row for row in range({i}) if row % 3]\nfor row in results[:3]:\n    print(row)",
)


def notebook(folder, count):
    """A notebook of `count` code cells."""
    cells = [
        nbformat.v4.new_code_cell(CELLS[i % len(CELLS)].replace("{i}", str(i // len(CELLS)))) for i in range(count)
    ]
    path = folder / f"{count}.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def seconds(path, times):
    """Median, least and greatest time of a check, the file's reading included."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        assert findings.findings(read.read(path))
        found.append(time.perf_counter() - begin)
    return statistics.median(found), min(found), max(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    args = parser.parse_args()
    times = 5 if args.quick else 30
    with tempfile.TemporaryDirectory() as folder:
        large, small = notebook(Path(folder), 200), notebook(Path(folder), 20)
        seconds(small, 2)  # imports and caches
        whole, least, most = seconds(large, times)
        each, _, _ = seconds(small, times * 4)
    print(f"200 cells: {whole:.3f} s ({least:.3f} to {most:.3f}); 20 cells: {each * 1000:.1f} ms")
    print(json.dumps({"cells200_s": round(whole, 4), "notebooks_per_s": round(1 / each, 1)}))


if __name__ == "__main__":
    main()
