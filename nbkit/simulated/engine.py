"""Runs backward passes also where autograd started before the device was there, and so has no thread for it."""

import torch

_without_thread: list[torch.device] = []


def prepare_engine(device: torch.device) -> None:
    """Finds out whether autograd has a thread for the device, by a backward pass of one op.

    torch makes the threads of all devices in the first backward pass of a process and never again: after one on the
    CPU alone, an internal assertion fails for a device that is registered later (torch 2.13).
    """
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.zeros((), device=device, requires_grad=True)
        try:
            torch.autograd.grad(x * 1, x)
        except RuntimeError as error:
            if "device_ready_queues_" not in str(error):
                raise
            _without_thread.append(device)


def let_this_thread_run_backward() -> None:
    """Lets the calling thread run backward passes itself where autograd has no thread for the device.

    The setting is the thread's own, and torch.autograd.set_multithreading_enabled is its public face. It changes
    nothing for passes on the CPU alone, which run in the calling thread anyway.
    """
    if _without_thread:
        torch._C._set_multithreading_enabled(False)
