"""`audit` runs a step again in the state of its thread, and with the random numbers, that it had; or says that not."""

import sys

import pytest

STEP = """\
import contextlib
import random
import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

class Once:
    entered = False
    def __enter__(self):
        if self.entered: raise RuntimeError("entered twice")
        self.entered = True
        return super().__enter__()

class Functions(Once, TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * 3 if func is torch.ones else out

class Dispatch(Once, TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * 3 if func is torch.ops.aten.ones.default else out

@contextlib.contextmanager
def setting(write, value, before):
    write(value)
    try: yield
    finally: write(before)


def state():
    return str([
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled(), torch.get_default_dtype(),
        torch.get_default_device(), torch.empty(1).device, torch.get_deterministic_debug_mode(),
        torch.utils.deterministic.fill_uninitialized_memory, torch.get_float32_matmul_precision(),
        torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled(),
        torch._C._get_sdp_priority_order(), torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled(),
        torch.ones(1, device="cpu").item(), torch._C._autograd._top_saved_tensors_default_hooks(True) is None,
    ])

model = torch.nn.Linear(4, 1)
seen, outside = [], state()
def work():
    seen.append(state())
    return model(torch.ones(2, 4, device="cpu", dtype=torch.float32))
"""
AROUND = "def step(): return work()\nwith {}:\n    for _ in range(3): step()\n"
DECORATED = "@{}\ndef step(): return work()\nfor _ in range(3): step()\n"
CONTEXTS = {
    "no_grad": "torch.no_grad()",
    "inference mode": "torch.inference_mode()",
    "autocast": "torch.autocast('cpu', torch.bfloat16)",
    "autocast without cache": "torch.autocast('cpu', torch.float16, cache_enabled=False)",
    "default device": "torch.device('meta')",
    "set default device": "setting(torch.set_default_device, 'meta', None)",
    "default dtype": "setting(torch.set_default_dtype, torch.float64, torch.float32)",
    "deterministic": "setting(torch.set_deterministic_debug_mode, 'warn', 'default')",
    "fill": "setting(lambda on: setattr(torch.utils.deterministic, 'fill_uninitialized_memory', on), False, True)",
    "precision": "setting(torch.set_float32_matmul_precision, 'medium', 'highest')",
    "attention": "sdpa_kernel(SDPBackend.MATH)",
    "order": "sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH], set_priority=True)",
    "anomaly mode": "torch.autograd.set_detect_anomaly(True, check_nan=False)",
    "saved tensors": "torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one)",
    "function mode": "Functions()",
    "dispatch mode": "Dispatch()",
}


@pytest.fixture
def audit(nbkit, folder, capsys):
    """`audit(source)`: the names of a script once its step was audited, and what was said."""

    def run(source, *words):
        (folder / "script.py").write_text(source)
        assert nbkit("audit", "script.py", *(words or ("--step", "step"))) == 0
        return vars(sys.modules["__main__"]), capsys.readouterr().out

    return run


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_what_is_set_around_a_step_is_set_again_and_taken_back(audit, context):
    names, out = audit(STEP + AROUND.format(context))
    assert len(names["seen"]) > 6, out
    assert {*names["seen"]} == {names["seen"][0]} != {names["outside"]}
    assert names["state"]() == names["outside"]
    assert "another run" not in out and "could not" not in out and "autograd on" not in out


@pytest.mark.parametrize("context", ["torch.no_grad()", "torch.autocast('cpu', torch.bfloat16)"])
def test_what_a_decorator_sets_is_set_again(audit, context):
    names, out = audit(STEP + DECORATED.format(context))
    assert len(names["seen"]) > 6, out
    assert {*names["seen"]} == {names["seen"][0]} != {names["outside"]}


def test_a_pass_through_a_loop_runs_as_it_ran(audit):
    source = STEP + "with torch.no_grad():\n    for _ in range(3):\n        work()\n"
    names, _ = audit(source, "--step", f":{source.splitlines().index('    for _ in range(3):') + 1}")
    assert len(names["seen"]) > 6 and {*names["seen"]} == {names["seen"][0]} != {names["outside"]}


TRAIN = """\
import random
import numpy as np
import torch
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
drawn = []
class Sampler:
    def __init__(self, rng): self.rng = rng
    def draw(self): return torch.tensor(self.rng.standard_normal((4, 8)), dtype=torch.float32)
def closure():
    rng = random.Random(3)
    return lambda: torch.tensor([[rng.gauss(0, 1) for _ in range(8)] for _ in range(4)])
{made}
def step({parameters}):
    x = {drawn}
    drawn.append(x.sum().item())
    loss = model(x).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
for _ in range(4): step({arguments})
"""
GENERATORS = {
    "torch": ("rng = torch.Generator().manual_seed(1)", "torch.randn(4, 8, generator=rng)", ""),
    "numpy": ("rng = Sampler(np.random.default_rng(1))", "rng.draw()", ""),
    "numpy, the older": ("rng = {'a': [np.random.RandomState(1)]}", "Sampler(rng['a'][0]).draw()", ""),
    "python, of a closure": ("rng = closure()", "rng()", ""),
    "of the model": ("model.rng = torch.Generator()", "torch.randn(4, 8, generator=model.rng)", ""),
    "an argument": ("made = np.random.default_rng(1)", "Sampler(rng).draw()", "rng"),
}


@pytest.mark.parametrize(("made", "drawn", "parameters"), GENERATORS.values(), ids=GENERATORS)
def test_generators_of_the_script_draw_the_same_again_and_end_where_they_were(audit, made, drawn, parameters):
    arguments = "made" if parameters else ""
    source = TRAIN.format(made=made, drawn=drawn, parameters=parameters, arguments=arguments)
    bare: dict = {}
    exec(source + "step(made)" * bool(arguments) + "step()" * (not arguments), bare)
    names, out = audit(source)
    assert len(names["drawn"]) >= 10 and {*names["drawn"]} == {*bare["drawn"][:4]}, out
    names["step"](*([names["made"]] if arguments else []))
    assert names["drawn"][-1] == bare["drawn"][4]
    assert "another run" not in out


ITERATOR = TRAIN.format(
    made="class Data:\n    def __init__(self): self.batches = (torch.ones(4, 8) * n for n in range(99))\ndata = Data()",
    drawn="next(data.batches) * scale",
    parameters="scale=1.0",
    arguments="",
)


def test_what_cannot_be_put_back_is_said_before_all(audit):
    _, out = audit(ITERATOR)
    brief = out[out.index("This is another run: the iterator `batches` could not be put back.") :]
    assert out.startswith(brief)
    assert "Step 0 has the loss" in brief and "What is found in it is said of that run, not of step 0." in brief


@pytest.mark.parametrize("batches", [8, 9, 10])
def test_an_iterator_that_ends_while_steps_are_timed_ends_no_audit(audit, batches):
    _, out = audit(ITERATOR.replace("range(99)", f"range({batches})"))  # 4 for the script, 1 to look, 3 to record
    assert out.startswith("This is another run: the iterator `batches` could not be put back.")
    assert "Step 0 could not be run again: StopIteration; the iterator `batches` could not be put back." in out


def test_no_finding_of_another_run_is_told_as_that_of_the_step(audit):
    source = ITERATOR.replace("): step()", "): step(scale=float('nan'))").replace("drawn.append", "x * 1; drawn.append")
    _, out = audit(source)
    assert "error, nan: aten.mul.Tensor" in out and "\n   in another run, script.py:" in out
    of_step = out[out.index("error, loss_not_finite: ") :]
    assert "\n   in step 0\n   No step that was run again shows the op where it begins. Record the" in of_step


BETWEEN = """\
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    loss = model(torch.ones(2, 4)).square().mean()
    loss.backward()
    return loss
for _ in range(4):
    step()
    optimizer.step()
"""


def test_steps_between_which_an_optimizer_steps_are_told_as_that(audit):
    _, out = audit(BETWEEN)
    assert out.startswith("Nothing wrong found. ")
    assert ": what optimizers do between the two counts, so that findings are about a similar step." in out
    assert "This is another run" not in out


def test_a_step_that_waits_for_a_queue_is_not_run_again(audit):
    made = "import queue\nitems = queue.Queue()\nfor _ in range(4): items.put(torch.ones(4, 8))"
    names, out = audit(TRAIN.format(made=made, drawn="items.get()", parameters="", arguments=""))
    assert len(names["drawn"]) == 4
    assert out.startswith("No step was run again: the step reads the queue `items`, which could not be put back.")


def test_a_step_that_writes_to_a_queue_alone_is_run_again(audit):
    made, drawn = "import queue\nitems = queue.Queue()", "items.put(1) or torch.ones(4, 8)"
    names, out = audit(TRAIN.format(made=made, drawn=drawn, parameters="", arguments=""))
    assert len(names["drawn"]) > 4 and "No step was run again" not in out


def test_what_was_not_looked_at_is_said_of_a_step_that_is_another_one(audit, monkeypatch):
    monkeypatch.setattr("nbkit.capture.watch.reached.MOST_OBJECTS", 3)
    made, drawn = "data = [[[np.random.default_rng(0)]]]", "torch.ones(4, 8) * data[0][0][0].random()"
    _, out = audit(TRAIN.format(made=made, drawn=drawn, parameters="", arguments=""))
    assert out.startswith("This is another run: what lies behind the first 100,000 objects that it reaches, such as ")


OVERFLOW = """\
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(16, 32) * 3000
def step():
    logits = model(x)
    loss = (logits @ logits.T).softmax(-1).square().mean()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
with torch.autocast("cpu", torch.float16):
    for _ in range(4): step()
"""


def test_an_op_that_overflows_under_autocast_only_is_named_and_no_gradient_is_told_to_be_zero(audit):
    _, out = audit(OVERFLOW)
    assert "1. error, overflow: aten.mm.default" in out and "script.py:8: `" in out
    assert "2. error, stale_cast: " in out  # the loop is in one block
    assert "zero_gradient" not in out and "\n3. " not in out


BLOCKS = """\
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
batches = [torch.randn(4, 8) for _ in range(12)]
batches[7] *= 1000
def step(x):
    loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
for block in range(0, 12, {length}):
    with torch.autocast("cpu", torch.bfloat16):
        for x in batches[block : block + {length}]: step(x)
"""


@pytest.mark.parametrize("length", [12, 2], ids=["one block", "blocks of two steps"])
def test_the_casts_that_a_block_of_autocast_keeps_are_part_of_a_step(audit, length):
    _, out = audit(BLOCKS.format(length=length))
    assert "unusual_batch" in out and "in step 7" in out
    assert "another run" not in out
