"""What ophook can be put around beside functions of modules: ops of torch, methods as they are, class methods in C."""

import sys
from types import ModuleType

import pytest
import torch

import nbkit
from nbkit import OptionError

X = torch.ones(2, 2)
SOURCE = """
import torch

class Outer:
    class Inner:
        def twice(self, x):
            return x * 2

class Table(dict):
    pass
"""


@pytest.fixture
def package(monkeypatch):
    module = ModuleType("third_party_classes")
    monkeypatch.setitem(sys.modules, "third_party_classes", module)
    exec(SOURCE, module.__dict__)
    return module


@pytest.mark.parametrize("op", [torch.ops.aten.mm, torch.ops.aten.mm.default])
def test_calls_of_an_op_of_torch_are_seen(op):
    with nbkit.ophook(op, nbkit.optrace) as hook:
        assert op(X, X).tolist() == [[2, 2], [2, 2]]
    assert hook.calls.total() == len(hook.traces) == 1
    assert "aten.mm.default" in hook.traces[0].trace.ops["op"].tolist()


def test_a_method_is_found_from_itself(package):
    before = package.Outer.Inner.twice
    with nbkit.ophook(before, nbkit.optrace) as hook:
        package.Outer.Inner().twice(X)
    assert hook.calls == {"third_party_classes.Outer.Inner.twice": 1}
    assert package.Outer.Inner.twice is before
    package.Outer.Inner = None
    with pytest.raises(OptionError, match="is not in its module under its own name"):
        nbkit.ophook(before, nbkit.optrace)


def test_what_a_caller_keeps_of_a_hooked_method_runs_on_afterwards(package):
    with nbkit.ophook("third_party_classes.Outer.Inner.twice", nbkit.optrace) as hook:
        kept = package.Outer.Inner().twice
    assert kept(X).tolist() == [[2, 2], [2, 2]]
    assert hook.calls.total() == 0


def test_a_name_that_is_like_no_other_gets_an_example():
    with pytest.raises(OptionError) as raised:
        nbkit.ophook("torch.nn.functional.qqqqqqqq", nbkit.optrace)
    assert str(raised.value) == (
        "target='torch.nn.functional.qqqqqqqq' cannot be found: torch.nn.functional has no 'qqqqqqqq'; "
        "give a name such as 'torch.nn.functional.softmax', or a function."
    )


def test_a_class_method_in_c_is_bound_as_before(package):
    with nbkit.ophook("third_party_classes.Table.fromkeys", nbkit.optrace) as hook:
        made = package.Table.fromkeys(["a", "b"], 3)
        package.Table().fromkeys("c")
    assert (type(made), made) == (package.Table, {"a": 3, "b": 3})
    assert hook.calls.total() == 2
    assert "fromkeys" not in vars(package.Table)
