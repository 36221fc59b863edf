"""Modules of PyTorch in notebooks, each run in a child of its own."""

import pytest

pytestmark = pytest.mark.processes

NET = """
import torch
from torch import nn
torch.manual_seed(0)
X = torch.randn(40, 4)
y = (X.sum(1) > 0).long()
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
loss = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(5):
    optimizer.zero_grad()
    loss(net(X), y).backward()
    optimizer.step()
"""


def test_a_module_is_a_candidate_and_its_layers_and_losses_are_not(notebooks):
    said = notebooks.torch(NET, "net.eval()\nnet(X[:7])")
    assert said["listed"] == ["--model net@1   Sequential, 4 features"]
    assert said["calls"] == [["net", 1, True, {"input": [40, 4]}]] * 5 + [["net", 2, False, {"input": [7, 4]}]]


def test_calls_are_kept_whether_torch_was_imported_in_an_earlier_cell_or_this_one(notebooks):
    said = notebooks.torch("import torch", NET.replace("import torch\n", "") + "\nnet.eval()\nnet(X[:3])")
    assert said["calls"][-1] == ["net", 2, False, {"input": [3, 4]}]


def test_scripted_modules_are_seen_too(notebooks):
    script = "net.eval()\nscripted = torch.jit.script(net)\ndel net\nscripted(X[:9])"
    said = notebooks.torch(NET, script)
    assert said["calls"][-1] == ["scripted", 2, False, {"input": [9, 4]}]


def test_of_a_training_loop_only_the_first_calls_are_kept(notebooks):
    said = notebooks.torch(NET.replace("range(5)", "range(200)"))
    assert len(said["calls"]) == 64


def test_a_call_that_fails_leaves_the_next_ones_countable(notebooks):
    cells = ["try:\n    net(X[:, :2])\nexcept RuntimeError:\n    pass", "net.eval()\nnet(X[:2])"]
    said = notebooks.torch(NET, *cells)
    assert said["calls"][-1] == ["net", 3, False, {"input": [2, 4]}]


def test_arguments_that_are_no_tensors_are_told_apart(notebooks):
    own = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
    def forward(self, rows, scale=1.0):
        return self.linear(rows) * scale
own = Net().eval()
own(X[:3], scale=2.0)
own(rows=X[:5])
"""
    said = notebooks.torch(NET, own)
    assert [c[3] for c in said["calls"] if c[0] == "own"] == [None, {"rows": [5, 4]}]
