"""Tests that ophook records the chosen calls only, changes nothing of them, and is undone exactly."""

import sys
from functools import partial
from inspect import signature
from threading import Thread
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from torch import nn, relu

import nbkit
from nbkit import OptionError
from tests.capture.identical import left_by
from tests.capture.models import bits

X = torch.linspace(-1, 1, 12).reshape(3, 4)
SOURCE = """
def scaled(x, factor=2.0):
    if factor < 0:
        raise ValueError("a negative factor")
    return x * factor

def twice(x):
    return scaled(scaled(x))

class Layer:
    def forward(self, x):
        return self, x + 1

    @staticmethod
    def plain(x):
        return x

    @classmethod
    def of(cls, x):
        return cls, x

class Child(Layer):
    pass
"""


@pytest.fixture
def package(monkeypatch):
    """A module of a third party, and another one that has imported a function of it by name."""
    module, user = ModuleType("third_party"), ModuleType("user_of_third_party")
    exec(SOURCE, module.__dict__)
    user.scaled = module.scaled
    monkeypatch.setitem(sys.modules, "third_party", module)
    monkeypatch.setitem(sys.modules, "user_of_third_party", user)
    return module


def ops_of(hook):
    return [(one.function, one.call, one.trace.ops["op"].tolist()) for one in hook.traces]


def contents(module):
    return {name: value for name, value in vars(module).items() if name != "__builtins__"}


def test_each_call_has_a_trace_of_its_own():
    with nbkit.ophook("torch.nn.functional.softmax", nbkit.optrace) as hook:
        F.softmax(X, -1)
        X.exp()
        nn.Softmax(0)(X)
    op = ["torch.nn.functional.softmax", "aten._softmax.default"]
    assert ops_of(hook) == [("torch.nn.functional.softmax", number, op) for number in (0, 1)]


def test_names_that_were_imported_before_are_seen_and_functions_stay_themselves():
    """B59 and B63: `from torch import relu` came first, and `activation is F.gelu` stays true."""
    before = torch.relu, F.gelu, torch.Tensor.lerp
    with nbkit.ophook([torch.relu, F.gelu, "torch.Tensor.lerp"], nbkit.optrace) as hook:
        relu(X), nn.GELU()(X)
        assert (torch.relu, F.gelu, torch.Tensor.lerp) == before
    assert hook.calls == {"torch.relu": 1, "torch.nn.functional.gelu": 1}


def test_a_method_keeps_its_self():
    """B15: `x.lerp(y, 0.5)` is about x."""
    with nbkit.ophook(torch.Tensor.lerp, nbkit.opcheck) as hook:
        out = torch.zeros(2).lerp(torch.ones(2), 0.5)
    assert (out.tolist(), len(hook.traces)) == ([0.5, 0.5], 1)


def test_a_call_that_raised_has_a_trace_and_later_ones_run():
    """B16: no exception is kept; nor is one swallowed."""
    with nbkit.ophook("torch.Tensor.matmul", nbkit.optrace) as hook:
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            X @ X
        assert (X @ X.T).shape == (3, 3)
    assert [one.trace.complete for one in hook.traces] == [False, True]


def test_two_calls_before_the_backward_pass_have_their_own_gradients():
    """B17: state belongs to a call."""

    def step():
        x = X.clone().requires_grad_()
        (F.softmax(x, -1).square().sum() + F.softmax(x, 0).sum()).backward()
        return [x.grad]

    with nbkit.ophook(F.softmax, nbkit.opdiff) as hook:
        left = step()
    assert bits(left) == bits(step())
    assert [one.trace.diffs["status"].tolist() for one in hook.traces] == [["ok"], ["ok"]]


def test_a_condition_and_a_limit_choose_calls():
    wanted = lambda x, dim, **options: dim == 0  # noqa: E731
    with nbkit.ophook(F.softmax, nbkit.optrace, when=wanted, limit=2) as hook:
        for dim in (0, 1, 0, 1, 0):
            F.softmax(X, dim)
    assert [one.call for one in hook.traces] == [0, 2]
    assert (dict(hook.calls), dict(hook.skipped)) == (
        {"torch.nn.functional.softmax": 5},
        {"not wanted by when=": 1, "over the limit": 2},
    )
    assert repr(hook) == (
        "<ophook of torch.nn.functional.softmax: 5 calls; 2 recorded, 1 not wanted by when=, 2 over the limit>"
    )


def test_a_recorder_may_have_options():
    with nbkit.ophook(F.linear, lambda: nbkit.opdiff(ops="mm"), limit=1) as hook:
        F.linear(X, X)
    assert hook.traces[0].trace.diffs["op"].tolist() == ["aten.mm.default"]


def test_a_function_of_a_third_party_is_replaced_wherever_modules_hold_it(package):
    before, names = package.scaled, [contents(sys.modules[name]) for name in ("third_party", "user_of_third_party")]
    with nbkit.ophook("third_party.scaled", nbkit.optrace) as hook:
        assert sys.modules["user_of_third_party"].scaled is package.scaled is not before
        assert (package.scaled.__name__, signature(package.scaled)) == ("scaled", signature(before))
        sys.modules["user_of_third_party"].scaled(X, factor=3.0)
        package.twice(X)
    assert [one.call for one in hook.traces] == [0, 1, 2]
    assert [contents(sys.modules[name]) for name in ("third_party", "user_of_third_party")] == names
    assert package.scaled is before


def test_what_was_replaced_is_back_after_an_exception(package):
    """B19."""
    before = package.scaled
    with pytest.raises(ValueError, match="a negative factor"), nbkit.ophook(package.scaled, nbkit.optrace) as hook:
        package.scaled(X, -1.0)
    assert package.scaled is before
    assert hook.traces[0].trace.meta["error"]["message"] == "a negative factor"


def test_methods_of_classes_bind_as_before_and_are_put_back_as_they_were(package):
    names = [
        "third_party.Layer.forward",
        "third_party.Layer.plain",
        "third_party.Child.of",
        "third_party.Child.forward",
    ]
    before, inherited = dict(vars(package.Layer)), dict(vars(package.Child))
    layer, child = package.Layer(), package.Child()
    with nbkit.ophook(names, nbkit.optrace) as hook:
        assert layer.forward(X)[0] is layer and child.forward(X)[0] is child
        assert layer.plain(X) is X and package.Layer.plain(X) is X
        assert child.of(X) == (package.Child, X)
    assert (dict(vars(package.Layer)), dict(vars(package.Child))) == (before, inherited)
    assert dict(hook.calls) == dict(zip(names, (2, 2, 1, 1), strict=True))
    assert dict(hook.skipped) == {"inside a hooked call": 1}


@pytest.mark.parametrize("ends_first", ["inner", "outer"])
def test_hooks_of_one_function_may_end_in_any_order(package, ends_first):
    """B18: each takes away its own."""
    before, hooks = package.scaled, [nbkit.ophook("third_party.scaled", nbkit.optrace) for _ in range(2)]
    outer, inner = (hook.__enter__() for hook in hooks)
    package.scaled(X)
    for hook in hooks if ends_first == "outer" else reversed(hooks):
        hook.__exit__(None, None, None)
        package.scaled(X)
    assert package.scaled is before
    counts = outer.calls.total(), inner.calls.total()
    assert counts == ((1, 2) if ends_first == "outer" else (2, 1))


def test_hooks_inside_each_other_and_inside_a_recording_all_see_their_calls(package):
    outside, within = nbkit.ophook("third_party.twice", nbkit.optrace), [package.scaled, torch.relu]
    with nbkit.optrace() as trace, outside as outer, nbkit.ophook(within, nbkit.opcheck) as inner:
        torch.relu(package.twice(X))
    assert (outer.calls.total(), len(inner.traces)) == (1, 3)
    assert trace.ops["op"].tolist().count("aten.mul.Tensor") == 2


def test_calls_inside_a_hooked_call_belong_to_it(package):
    with nbkit.ophook(["third_party.twice", "third_party.scaled"], nbkit.optrace) as hook:
        package.twice(X)
    assert (len(hook.traces), dict(hook.skipped)) == (1, {"inside a hooked call": 2})
    assert (hook.traces[0].trace.ops["op"] == "aten.mul.Tensor").sum() == 2


def test_calls_of_other_threads_run_and_are_counted(package):
    with nbkit.ophook("third_party.scaled", nbkit.optrace) as hook:
        thread = Thread(target=package.scaled, args=(X,))
        thread.start()
        thread.join()
    assert (hook.traces, dict(hook.skipped)) == ([], {"in another thread": 1})


def test_a_fused_layer_computes_the_same_bits():
    """Function modes make attention in eval mode leave its fused path: the hook steps aside."""
    layer, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.randn(2, 3, 8)
    with torch.no_grad(), nbkit.ophook(F.softmax, nbkit.optrace) as hook:
        left = layer(x)
        F.softmax(x, -1)
    assert hook.calls.total() == 1  # it is back afterwards
    with torch.no_grad():
        assert bits([left]) == bits([layer(x)])


@pytest.mark.parametrize("name", ["llama, adamw", "mlp, sgd", "gru, adamw", "in-place", "aliases", "random draws"])
@pytest.mark.parametrize("verb", ["optrace", "opdiff", "opcheck"])
def test_a_step_computes_the_same_bits(name, verb):
    targets = ["torch.nn.functional.linear", "torch.Tensor.add_", "torch.nn.functional.dropout", "torch.Tensor.matmul"]
    assert left_by(name, "float32", nbkit.ophook(targets, getattr(nbkit, verb))) == left_by(name, "float32")


def test_compiled_code_runs_as_before(package):
    step = torch.compile(lambda x: package.scaled(F.softmax(x, -1)), backend="eager")
    with nbkit.ophook(["third_party.scaled", F.softmax], nbkit.optrace):
        assert torch.equal(step(X), F.softmax(X, -1) * 2)


BAD_TARGETS = {
    "": "names no function",
    "  ": "names no function",
    "torch..relu": "must be a dotted name",
    "torch.nn.functional.softmx": "torch.nn.functional has no 'softmx'; did you mean 'softmax'",
    "no_such_package.f": "cannot be found: No module named 'no_such_package'",
    "torch.nn": "is a module; name a function in it.",
    "torch.pi": "is not a function but a float",
    "torch.nn.Linear": "is a class; name a function or a method",
    "builtins.list.append": "belongs to a class in C, where nothing can be replaced.",
}


@pytest.mark.parametrize("target", BAD_TARGETS)
def test_a_bad_target_is_one_sentence(target):
    with pytest.raises(OptionError) as raised:
        nbkit.ophook(target, nbkit.optrace)
    assert BAD_TARGETS[target] in str(raised.value)
    assert repr(target.strip()) in str(raised.value)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ([], "target=[] names no function"),
        (3, "target=3 is not a function"),
        (partial(F.softmax, dim=0), "is not in its module under its own name"),
        ([F.softmax, ""], "names no function"),
    ],
)
def test_a_target_that_is_no_function_is_one_sentence(target, sentence):
    with pytest.raises(OptionError, match="^target=") as raised:
        nbkit.ophook(target, nbkit.optrace)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"recorder": nbkit.optrace()}, "makes no recorders; give what makes one for each call"),
        ({"recorder": nbkit.optrace, "when": 3}, "when must be a function of a call's arguments, got 3"),
        ({"recorder": nbkit.optrace, "limit": 0}, "limit must be a number of calls above 0, got 0"),
        ({"recorder": nbkit.optrace, "limit": True}, "limit must be a number of calls above 0, got True"),
    ],
)
def test_another_bad_option_is_one_sentence(options, sentence):
    with pytest.raises(OptionError) as raised:
        nbkit.ophook("torch.relu", **options)
    assert sentence in str(raised.value)


def test_a_hook_is_used_once():
    hook = nbkit.ophook("torch.relu", nbkit.optrace)
    with hook:
        pass
    with pytest.raises(OptionError, match="has been used already"):
        hook.__enter__()


def test_a_program_exported_inside_computes_what_it_would_outside(package):
    class Scales(nn.Module):
        def forward(self, x):
            return package.scaled(x)

    with nbkit.ophook(package.scaled, nbkit.optrace) as hook:
        program = torch.export.export(Scales(), (X,), strict=False)
    assert torch.equal(program.module()(X), X * 2)
    assert not hook.traces and not hook.calls
