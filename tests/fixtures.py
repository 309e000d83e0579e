"""What every test gets: a fixed seed, and a check that no mode, hook or grad flag of ours is left behind."""

import gc
import os
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch
from pandas import DataFrame
from torch.nn.modules import module as torch_module
from torch.utils import _python_dispatch

from nbkit.schema import TABLES
from nbkit.trace.trace import Trace
from tests.support.garbage import pass_over

GLOBAL_HOOKS = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
    "_global_module_registration_hooks",
    "_global_parameter_registration_hooks",
    "_global_buffer_registration_hooks",
)
# As tests/__init__.py says to numpy.
torch.set_num_threads(1)
# On a busy machine everything takes its two seconds; the tests of progress ask for it.
os.environ["NBKIT_PROGRESS"] = "0"
# A suite that was started in the background ignores Ctrl-C, and so do its children: tests raise it.
signal.signal(signal.SIGINT, signal.default_int_handler)
# torch itself wraps an optimizer class's step() when its first optimizer is made.
torch.optim.AdamW([torch.zeros(1)])


fill = Trace._fill


def filled(self: Trace, frames: Mapping[str, DataFrame], meta: Mapping[str, Any]) -> None:
    """A recording's own frames are not checked again when it ends, as this takes longer than to make them."""
    assert all(TABLES[name].check(frame) is frame for name, frame in frames.items())
    fill(self, frames, meta)


Trace._fill = filled


def pytest_collection_finish() -> None:
    """Collections of garbage, which many tests ask for, pass over the half million objects of imported modules."""
    pass_over()


@pytest.fixture(autouse=True, scope="module")
def older_objects_are_passed_over() -> None:
    """Collections, and looks at what is alive, see what the tests of one file make, not all that ran before them."""
    pass_over()


def left_behind() -> dict[str, object]:
    """What a recorder could leave: modes on torch's stacks, hooks for all modules, patched methods, the GC's state."""
    return {
        "dispatch modes": _python_dispatch._len_torch_dispatch_stack(),
        "function modes": torch._C._len_torch_function_stack(),
        "hooks": {name: len(getattr(torch_module, name)) for name in GLOBAL_HOOKS},
        "module call": torch.nn.Module.__call__,
        "optimizer step": torch.optim.AdamW.step,
        "backward": (torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad),
        "profiler": torch._C._autograd._profiler_enabled(),
        "grad": torch.is_grad_enabled(),
        "garbage collection": gc.isenabled(),
    }


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    before = left_behind()
    yield
    assert left_behind() == before


@pytest.fixture(autouse=True)
def seed() -> None:
    """Of the CPU alone: torch.manual_seed notes for each device without a driver who called it, for ever."""
    torch.default_generator.manual_seed(0)
