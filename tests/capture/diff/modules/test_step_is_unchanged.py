"""Comparing modules neither changes the step nor leaves anything in it; what cannot run twice is counted."""

import gc
import threading
import warnings
import weakref
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit import OptionError, PatternError
from tests.capture.diff.planted import compared, wrong
from tests.capture.identical import each_step, left_by
from tests.capture.models import bits, mlp


@each_step
def test_the_step_computes_the_same_bits(name, dtype):
    assert left_by(name, dtype, nbkit.opdiff(level="module")) == left_by(name, dtype)


@pytest.mark.parametrize("name", ["rwkv4, adamw", "conv, sgd", "gru, adamw", "fused qkv, checkpoint", "create_graph"])
def test_the_step_computes_the_same_bits_with_containers(name):
    assert left_by(name, "float32", nbkit.opdiff(level="module", modules="*")) == left_by(name, "float32")


def skipped(step, **options):
    """The reasons, without their beginning, for which modules were not compared."""
    trace = compared(step, level="module", **options)
    assert trace.complete and wrong(trace).empty
    begin = "not compared: "
    return {reason.removeprefix(begin) for reason in trace.meta["skipped"] if reason.startswith(begin)}


RANDOM = "random modules, such as Dropout in training"


class Jitter(nn.Module):
    """Draws in ways that only its own code knows."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def forward(self, x):
        return x * self.draw(x)


DRAWS = {
    "torch": lambda x: torch.rand(4),
    "numpy": lambda x: float(np.random.rand()),
    "an own generator": lambda x: torch.rand(4, generator=torch.Generator().manual_seed(1)),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_random_modules_are_counted_and_draw_what_they_draw_bare(draw):
    """B7 and B35."""
    model, x = Jitter(DRAWS[draw]), torch.randn(3, 4)

    def step():
        torch.manual_seed(2)
        np.random.seed(2)
        return [model(x), torch.rand(2), torch.tensor(np.random.rand())]

    left = []
    assert skipped(lambda: left.extend(step())) == {RANDOM}
    assert bits(left) == bits(step())


def test_progress_says_how_many_module_calls_were_compared():
    model, tool = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nbkit.opdiff(level="module")
    (observer,) = tool.observers
    with tool:
        model(torch.ones(1, 2))
        assert observer.progress() == "2 module calls compared"


def test_dropout_is_compared_in_eval_mode():
    assert skipped(lambda: mlp()(torch.randn(5, 6))) == {RANDOM}
    trace = compared(lambda: mlp().eval()(torch.randn(5, 6)), level="module")
    assert set(trace.diffs["op"][trace.diffs["status"] == "ok"]) == {"Linear", "ReLU", "Dropout", "Tanh"}


def test_what_a_module_holds_is_left_as_it_was():
    """Its code runs once more on copies: attributes, lists and caches of the step's own module do not move."""

    class Remembers(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.seen, self.register = 0, [], {"last": torch.zeros(2)}
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.calls += 1
            self.seen.append(x.detach())
            self.register["last"].add_(x.detach())
            self.total += x.detach()
            return x * 2

    model, x = Remembers(), torch.ones(2, requires_grad=True)
    trace = compared(lambda: model(x).sum().backward(), level="module")
    assert wrong(trace).empty
    assert (model.calls, len(model.seen)) == (1, 1)
    assert model.register["last"].tolist() == model.total.tolist() == [1.0, 1.0]


def test_methods_and_partials_that_a_module_holds_run_on_its_copy():
    class Tallies(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))
            self.double, self.triple = self.add, partial(self.add, factor=3)

        def add(self, x, factor=2):
            self.total += factor * x.detach()
            return x * factor

        def forward(self, x):
            return self.double(x) + self.triple(x)

    model = Tallies()
    trace = compared(lambda: model(torch.ones(2)), level="module")
    assert trace.diffs["status"].tolist() == ["ok", "ok"]  # what it returns, and its buffer
    assert model.total.tolist() == [5.0, 5.0]


def test_a_module_that_writes_to_what_is_not_its_own_is_left_alone():
    store = torch.zeros(2)

    class Writes(nn.Module):
        def forward(self, x):
            store.add_(x)
            return x * 2

    reason = "modules that write to tensors which they neither hold nor are given"
    assert skipped(lambda: Writes()(torch.ones(2))) == {reason}
    assert store.tolist() == [1.0, 1.0]


def test_modules_with_hooks_or_another_forward_are_counted_and_the_hooks_run_once():
    """B63: hooks of the user's see one call."""
    hooked, other, seen = nn.Linear(2, 2), nn.Linear(2, 2), []
    hooked.register_forward_hook(lambda *call: seen.append(1))
    other.forward = lambda x: x * 2
    x = torch.ones(2)
    assert skipped(lambda: hooked(x)) == {"modules with hooks, which may change what they compute"}
    assert skipped(lambda: other(x)) == {"modules whose forward was replaced"}
    assert seen == [1]


def test_transformed_compiled_and_unmade_modules_are_counted():
    """B12 and B14."""
    layer, lazy = nn.Linear(2, 2), nn.LazyLinear(2)
    compiled = torch.compile(nn.Linear(2, 2), backend="eager")
    assert skipped(lambda: torch.func.vmap(layer)(torch.ones(3, 2))) == {"modules inside a transform of torch.func"}
    assert skipped(lambda: lazy(torch.ones(3, 2))) == {"modules with hooks, which may change what they compute"}
    assert "compiled modules" in skipped(lambda: compiled(torch.ones(3, 2)), modules="*")


def test_tensors_without_values_and_of_odd_layouts():
    """B10, B11 and B13."""
    assert skipped(lambda: nn.Linear(2, 2, device="meta")(torch.ones(1, 2, device="meta"))) == {
        "tensors without values (meta, fake)"
    }
    bag = nn.Embedding(6, 3, sparse=True)
    assert skipped(lambda: bag(torch.tensor([1, 1, 4])).sum().backward()) == set()
    assert skipped(lambda: nn.Tanh()(torch.empty(0, 3))) == set()


def test_a_module_that_raises_raises_in_the_step_and_later_calls_are_compared():
    """B16."""
    layer = nn.Linear(2, 3)

    def step():
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            layer(torch.ones(1, 5))
        layer(torch.ones(1, 2))

    trace = compared(step, level="module")
    assert trace.diffs["status"].tolist() == ["ok"]


def test_a_module_that_the_reference_cannot_run_is_a_row():
    class OnlyOnce(nn.Module):
        def forward(self, x):
            if runs:
                raise ValueError("once is enough")
            runs.append(1)
            return x * 2

    runs = []
    trace = compared(lambda: OnlyOnce()(torch.ones(2)), level="module")
    assert trace.diffs[["status", "message"]].to_numpy().tolist() == [
        ["skipped", "the reference cannot run it (ValueError: once is enough)"]
    ]
    assert trace.meta["skipped"]["not compared: modules that the reference cannot run"] == 1


def test_nothing_of_the_step_is_kept_alive():
    """B53: what is held for the backward pass goes with the graph."""
    layer, x = nn.Linear(4, 4), torch.randn(2, 4, requires_grad=True)
    with nbkit.opdiff(level="module") as trace:
        out = layer(x)
        out.sum().backward()
    gone = weakref.ref(out)
    del out
    gc.collect()
    assert gone() is None and len(trace.diffs) == 4


def test_hooks_on_the_graph_are_gone_after_the_recording():
    layer, x, show = nn.Linear(4, 4), torch.randn(2, 4), warnings._showwarnmsg
    with nbkit.opdiff(level="module") as trace:
        out = layer(x)
    out.sum().backward()
    assert trace.diffs["phase"].tolist() == ["forward"]
    assert warnings._showwarnmsg is show
    assert "nbkit-reference" not in {thread.name.rpartition("_")[0] for thread in threading.enumerate()}


def test_a_module_warns_as_often_as_it_does_bare():
    class Warns(nn.Module):
        def forward(self, x):
            warnings.warn("mine", stacklevel=1)
            return x * 2

    model, x = Warns(), torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        trace = compared(lambda: model(x).sum().backward(), level="module")
    assert [str(one.message) for one in shown] == ["mine"]
    assert set(trace.diffs["phase"]) == {"forward", "backward"}


def test_samples_sizes_and_phases():
    layer, x = nn.Tanh(), torch.randn(2, 4, requires_grad=True)

    def step():
        for _ in range(4):
            layer(x).sum().backward()

    assert len(compared(step, level="module", sample=2).diffs) == 4
    assert set(compared(step, level="module", phases="backward").diffs["role"]) == {"input_gradient"}
    reason = "not compared: modules whose tensors take more than max_bytes=10 on the reference"
    assert compared(step, level="module", max_bytes=10).meta["skipped"][reason] == 4


def test_a_tolerance_is_set_by_the_class_of_a_module():
    """B24: the override decides, and the row says so."""
    layer, x = nn.Softmax(-1), torch.randn(3, 4)
    row = compared(lambda: layer(x), level="module", tolerances={"Softmax": (0.0, 0.0)}).diffs.iloc[0]
    assert (row["status"], row["atol"], row["rtol"]) == ("mismatch", 0.0, 0.0)


def test_modules_are_chosen_by_their_own_path():
    model, x = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 4)), torch.randn(3, 4)
    chosen = lambda **options: set(compared(lambda: model(x), level="module", **options).diffs["module"])  # noqa: E731
    assert chosen() == {"0.0", "0.1", "1"}
    assert chosen(modules="0") == {"0"}
    assert chosen(modules="*", exclude_modules="0") == {"", "1"}
    assert chosen(modules="") == set()


def test_modules_of_whose_ops_none_is_recorded_are_counted_and_not_among_those_compared():
    """The three that begin with one op are three."""
    model, x = nn.Sequential(nn.Sequential(nn.Tanh()), nn.Sequential(nn.Sigmoid())), torch.ones(2, 4)
    trace = compared(lambda: model(x), level="module", modules="*", exclude_modules="*.*")
    assert trace.ops.empty and trace.diffs.empty
    assert trace.meta["skipped"]["not compared: modules that run no op"] == 3
    assert trace.meta["compared_modules"] == 0


BAD_OPTIONS = [
    ({"level": "layer"}, "level='layer' is not known"),
    ({"ops": "mm"}, "compares modules, not ops; choose them by modules="),
    ({"reference": lambda op, args, kwargs: None}, "runs no modules; give 'cpu'"),
    ({"phases": "optimizer"}, "has rows of the phases forward and backward"),
    ({"keep": 3}, "captures no calls; leave out keep="),
]


@pytest.mark.parametrize(("options", "sentence"), BAD_OPTIONS)
def test_bad_options_are_one_sentence_before_anything_runs(options, sentence):
    with pytest.raises(OptionError) as raised:
        nbkit.opdiff(**{"level": "module"} | options)
    assert sentence in str(raised.value)


def test_another_recording_is_refused():
    with nbkit.optrace(values="stats") as trace:
        torch.zeros(2).exp()
    with pytest.raises(OptionError, match="level='module' has no use for a trace"):
        nbkit.opdiff(level="module", against=trace)


def test_a_bad_pattern_is_refused():
    with pytest.raises(PatternError):
        nbkit.opdiff(level="module", modules="re:(")


def test_step_in_a_thread_of_autograd_is_as_bare():
    """The reference runs while a node's hook waits for it: the graph of the step goes on as it would."""
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4)), torch.randn(3, 4)

    def step():
        model.zero_grad()
        out = model(x)
        F.mse_loss(out.mul_(2), torch.zeros(3, 4)).backward(retain_graph=True)
        return [parameter.grad.clone() for parameter in model.parameters()]

    with nbkit.opdiff(level="module") as trace:
        left = step()
    assert bits(left) == bits(step()) and wrong(trace).empty
