"""Defines the base of the dispatch modes that a step runs under."""

from torch.utils._python_dispatch import TorchDispatchMode


class StepMode(TorchDispatchMode):
    """Changes nothing for higher-order ops and compiled code, as the base of the modes that see a step's ops."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default wraps __torch_dispatch__ in torch._dynamo.disable, which costs 2 us per op.
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        # Otherwise torch.compile falls back to eager under this mode, and the step computes something else.
        return True
