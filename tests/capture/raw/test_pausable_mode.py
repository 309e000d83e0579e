from torch._C import _get_function_stack_at, _len_torch_function_stack
from torch.overrides import TorchFunctionMode

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
