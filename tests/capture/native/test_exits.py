"""Errors and interrupts pass through the native recorder unchanged, and it is off when a recording has ended."""

import signal

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from tests.capture.models import recorded_ops


def failing_backward():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    y.register_hook(lambda gradient: torch.mm(gradient, gradient))
    y.sum().backward()


def failing_optimizer():
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], foreach=False, momentum=0.9)
    for size in (2, 3):
        weight.grad = torch.ones(2)
        optimizer.step()
        optimizer.state[weight]["momentum_buffer"] = torch.ones(size + 1)


@pytest.mark.parametrize(
    ("step", "op"),
    [
        (lambda: torch.ones(2) @ torch.ones(3), "aten.dot.default"),
        (lambda: torch.empty(-1), "aten.empty.memory_format"),
        (failing_backward, "aten.mm.default"),
        (failing_optimizer, "aten.add_.Tensor"),
    ],
)
def test_the_op_that_raised_is_named(step, op):
    with pytest.raises(RuntimeError) as bare:
        step()
    with pytest.raises(RuntimeError) as raised, nbkit.optrace() as trace:
        step()
    assert (type(raised.value), str(raised.value)) == (type(bare.value), str(bare.value))
    assert trace.meta["error"]["message"] == str(bare.value)
    assert trace.ops["op"].iloc[trace.meta["error"]["op_id"]] == op
    assert "dispatch.py" not in "".join(str(entry.path) for entry in raised.traceback)


def test_an_error_of_a_python_kernel_is_the_same_object():
    error = KeyError("mine")
    library = torch.library.Library("nbkit_tests", "FRAGMENT")
    library.define("fails(Tensor x) -> Tensor")

    @torch.library.impl(library, "fails", "CPU")
    def fails(x):
        raise error

    with pytest.raises(KeyError) as raised, nbkit.optrace() as trace:
        torch.ops.nbkit_tests.fails(torch.ones(1))
    assert raised.value is error
    assert trace.ops["op"].iloc[trace.meta["error"]["op_id"]] == "nbkit_tests.fails.default"


def test_an_error_that_was_caught_is_not_the_one_that_stopped_the_step():
    with pytest.raises(ValueError, match="other"), nbkit.optrace() as trace:
        with pytest.raises(RuntimeError):
            torch.ones(2) @ torch.ones(3)
        raise ValueError("other")
    assert trace.meta["error"]["op_id"] is None


def test_an_interrupt_passes():
    def interrupt(gradient):
        signal.raise_signal(signal.SIGINT)

    x = torch.ones(2, requires_grad=True) * 2
    x.register_hook(interrupt)
    with pytest.raises(KeyboardInterrupt), nbkit.optrace() as trace:
        x.sum().backward()
    assert trace.meta["error"]["type"] == "KeyboardInterrupt"
    assert not trace.complete


class Counting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


def ops_seen_by_a_mode():
    with Counting() as mode:
        (torch.ones(2, requires_grad=True) * 2).sum().backward()
    return mode.seen


def test_other_modes_work_as_before_once_it_was_used():
    bare = ops_seen_by_a_mode()
    with nbkit.optrace():
        inside = ops_seen_by_a_mode()
    assert bare == inside == ops_seen_by_a_mode() > 4


def test_nested_recordings_may_end_in_any_order():
    outer, inner = nbkit.optrace(), nbkit.optrace()
    first = outer.__enter__()
    torch.ones(1)
    second = inner.__enter__()
    torch.zeros(1)
    outer.__exit__(None, None, None)
    torch.eye(1)
    inner.__exit__(None, None, None)
    torch.ones(1)
    assert recorded_ops(first) == {"aten.ones.default": 1, "aten.zeros.default": 1}
    assert recorded_ops(second) == {"aten.zeros.default": 1, "aten.eye.default": 1}
