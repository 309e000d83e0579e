import torch
from torch._C import _get_function_stack_at, _len_torch_function_stack
from torch.overrides import BaseTorchFunctionMode, TorchFunctionMode

from nbkit.capture.raw.pausable_mode import PausableMode


def test_modes_that_others_left_above_stay_in_their_order():
    mode, above = PausableMode(), [TorchFunctionMode(), TorchFunctionMode()]
    depth = _len_torch_function_stack()
    for each in (mode, *above):
        each.__enter__()
    mode.__exit__(None, None, None)
    stack = [_get_function_stack_at(index) for index in range(depth, _len_torch_function_stack())]
    for each in reversed(above):
        each.__exit__(None, None, None)
    assert len(stack) == 2 and stack[0] is above[0] and stack[1] is above[1]


class Counting(PausableMode):
    """Counts the functions of torch that run while it is on."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


def test_below_another_mode_a_pause_ends_with_resume_too():
    with Counting() as mode, BaseTorchFunctionMode():
        mode.pause()
        torch.ones(2)
        assert mode.seen == 0
        mode.resume()
        torch.ones(2)
        assert mode.seen == 1


def test_a_pause_that_outlives_the_mode_does_not_bring_it_back():
    with Counting() as mode:
        mode.pause()
    mode.resume()
    torch.ones(2)
    assert (mode.seen, mode.is_on()) == (0, False)
