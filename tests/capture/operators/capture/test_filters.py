"""Captures the calls that the filters mean, which are those whose rows fit them."""

import subprocess
from functools import partial

import pytest
import torch

from nbkit.patterns import module_matcher
from tests.capture.models import mlp, train_step
from tests.capture.operators.folders import captured
from tests.capture.recorder.same_bits.test_bit_identity_ways import WAYS
from tests.processes import PYTHON
from tests.support.simulated import needs_simulated_device

COLUMNS = ["op", "call", "module", "phase"]
# Whose gradient they add to is known when the step has ended: they are taken.
ADDING = {
    "aten.detach.default",
    "aten.add_.Tensor",
    "aten.add.Tensor",
    "aten.new_empty_strided.default",
    "aten.copy_.default",
}


def rows(folder, step, **options):
    torch.manual_seed(3)
    return captured(folder, step, **options).captures[COLUMNS].fillna("")


def fitting(everything, options):
    """Those of all calls that stand in modules which the filter wants."""
    ((kind, pattern),) = options.items()
    matches = module_matcher(pattern)
    fits = everything["module"].map(lambda path: bool(path) and matches(path))
    return everything[fits if kind == "modules" else ~fits].reset_index(drop=True)


def are_those(actual, expected, more=ADDING):
    """Returns whether all expected calls are there, and no others but those of some ops in the backward pass."""
    both = actual.merge(expected, how="outer", indicator=True)
    other = both[both["_merge"] != "both"]
    return set(other["_merge"]) <= {"left_only"} and set(other["op"]) <= more and set(other["phase"]) <= {"backward"}


def stepped(way, folder, **options):
    """Returns the captured calls of the same step each time that it is asked of a way."""
    torch.manual_seed(0)
    return rows(folder, partial(WAYS[way], mlp(), torch.randn(5, 6)), **options)


@pytest.fixture(scope="module", params=WAYS)
def everything(request, tmp_path_factory):
    """A way, and all calls of its step."""
    return request.param, stepped(request.param, tmp_path_factory.mktemp("all") / "calls")


@pytest.mark.parametrize("options", [{"modules": "3"}, {"modules": "0,6"}, {"exclude_modules": "3"}])
def test_calls_of_modules_are_those_whose_rows_are(tmp_path, everything, options):
    way, every = everything
    expected, actual = fitting(every, options), stepped(way, tmp_path / "calls", **options)
    # What a hook of a module does in the backward pass belongs to none before the step has ended.
    assert len(expected) and are_those(actual, expected, ADDING | ({"aten.mul.Tensor"} if way == "hooks" else set()))


@pytest.mark.parametrize("name", ["llama", "rwkv4"])
def test_calls_of_a_layer_are_forward_and_backward(tmp_path, name):
    step = train_step(name)
    step()
    everything = rows(tmp_path / "all", step)
    layer = next(path for path in everything["module"].unique() if path.endswith(".1"))
    expected = fitting(everything, {"modules": layer})
    assert set(expected["phase"]) == {"forward", "backward"}
    assert are_those(rows(tmp_path / "calls", step, modules=layer), expected)


IN_DEVICE_THREAD = """
import torch, nbkit
nbkit.SimulatedDevice()  # before the first backward pass
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)).to("sim")
x = torch.randn(6, 8).to("sim")
step = lambda: (model.zero_grad(), model(x).square().sum().backward())
with nbkit.opdiff(tolerances={"mm": (0, 0), "gelu_backward": (0, 0)}) as flagged:
    step()
wrong = flagged.diffs[flagged.diffs["status"] == "mismatch"]
with nbkit.opcapture("calls", only=flagged) as trace:
    step()
assert len(set(flagged.ops["thread"])) == 2
assert sorted(trace.captures["op"]) == sorted(wrong["op"]) and len(wrong) == 4, trace.captures
"""


@needs_simulated_device
def test_calls_that_a_trace_found_wrong_in_the_thread_of_a_device_are_taken(tmp_path):
    done = subprocess.run([*PYTHON, "-c", IN_DEVICE_THREAD], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
