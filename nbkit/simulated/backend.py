"""Registers the backend with torch's experimental API for backends in Python; once done it holds for the process."""

import atexit
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from nbkit.compat.torch_versions import setup_of_backends_in_python
from nbkit.errors import OptionError

# torch's name of the one backend slot it has for others, while nobody has taken it.
FREE = "privateuseone"
_ours: list[str] = []


def register_backend(name: str) -> bool:
    """Makes `name` a device type of torch in this process; returns whether it was new.

    Raises OptionError where this torch has no backends in Python, where `name` cannot be one, and where the one slot
    that torch has for them is taken, also by an earlier call with another name.
    """
    taken = torch._C._get_privateuse1_backend_name()
    if name in _ours:
        return False
    if taken != FREE:
        owner = "an earlier SimulatedDevice" if taken in _ours else "another backend"
        raise OptionError(
            f"The device type {name!r} cannot be made: torch has one slot for such backends (PrivateUse1), and {owner} "
            f"has it as {taken!r}; {_way_out(taken)}."
        )
    check_name(name)
    setup = setup_of_backends_in_python()
    if setup is None:
        raise OptionError(
            f"A simulated device needs torch's experimental backends in Python, which torch {torch.__version__} does "
            f"not have; take torch 2.11 or newer."
        )
    setup(name, backend_module=DeviceModule(name))
    _ours.append(name)
    atexit.register(_let_autograd_finish)
    return True


def _let_autograd_finish() -> None:
    """Gives autograd's thread for the device time to let go of its last backward pass.

    backward() returns before that thread has freed what it worked on, for which it needs the interpreter: if that ends
    first, the process aborts (torch 2.13).
    """
    time.sleep(0.05)


def check_name(name: str) -> None:
    """Raises OptionError unless torch can take `name` as that of a new device type."""
    if not isinstance(name, str) or not name.isidentifier() or not name.islower():
        raise OptionError(
            f"name must be a name of a device type, got {name!r}; take lower-case letters, such as 'sim'."
        )
    if hasattr(torch, name) or hasattr(Tensor, name):
        raise OptionError(f"name={name!r} is a name that torch uses already; take another one, such as 'sim'.")


def _way_out(taken: str) -> str:
    return f"use name={taken!r}, or start a new process" if taken in _ours else "start a process without it"


class DeviceModule:
    """Answers as `torch.sim` the calls that torch's generic code makes of an accelerator.

    The device computes on the CPU, so it has nothing to wait for, and its random numbers come from the CPU's generator.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def device(self, index: Any) -> AbstractContextManager[None]:
        return nullcontext()

    def synchronize(self, device: Any = None) -> None:
        return None

    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        torch.set_rng_state(state)

    def manual_seed(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        # torch.manual_seed() calls this and seeds the CPU's generator itself.
        return None

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]
