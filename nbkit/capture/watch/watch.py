"""Notes a few numbers of each training step: loss, norm of the gradients, memory that it holds, time."""

import json
import os
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns, process_time_ns
from typing import Any

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack, _len_torch_function_stack, _set_grad_enabled
from torch._C._functorch import peek_interpreter_stack
from torch.linalg import vector_norm
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype

from nbkit.capture.raw.patching import Patch
from nbkit.capture.replay.isolated import isolated
from nbkit.capture.step.optimizer_events import OptimizerEvents
from nbkit.capture.watch.batches import LoaderBatches
from nbkit.capture.watch.layers import LayerWatch
from nbkit.capture.watch.share import TimeShare
from nbkit.capture.watch.state import State

Row = dict[str, Any]
# What reads all gradients, or asks the system, may take this share of the script's time, which slows it by twice as
# much, as the caches hold other data then; the first steps are read in any case.
TIME_SHARE, FIRST_READ = 0.004, 50
# Rows of the data set that are told of a step: more would make most of the file.
MOST_INDICES = 64
# Columns that tell what is in use, at steps that are read.
IN_USE = ("process_bytes", "reserved_bytes", "device_fraction")


class StepWatch:
    """Watches steps between begin() and end(), which returns the row of the frame `steps`, while installed.

    What else runs in between, such as an evaluation, is not looked at; steps of optimizers there are counted.
    """

    def __init__(self) -> None:
        self.events = OptimizerEvents(_run_isolated, self._on_step, self._on_skip)
        self.backward = Patch(torch.autograd, "backward")
        self.scale = Patch(torch.amp.GradScaler, "scale")
        self.memory = ProcessMemory()
        self.row: Row | None = None
        self.outside_steps = 0  # those of optimizers between the watched steps
        self.unread_steps = 0  # those whose gradients and memory were not read
        self.reading = TimeShare(TIME_SHARE)
        self.layers: LayerWatch | None = None
        self.batches = LoaderBatches()
        self.is_installed = False
        self.has_utilization = True  # of the device, until asking fails

    def install(self) -> None:
        backward, scale, watch = self.backward, self.scale, self

        def run_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            watch.note_losses(tensors)
            return backward.before(tensors, *args, **kwargs)

        def run_scale(scaler: Any, outputs: Any) -> Any:
            result = scale.before(scaler, outputs)
            if watch.row is not None and isinstance(outputs, Tensor):
                watch.unscaled[id(result)] = outputs
            return result

        backward.install(run_backward)
        scale.install(run_scale)
        self.events.install()
        self.batches.install()
        self.is_installed = True

    def remove(self) -> None:
        self.is_installed = False
        if self.layers is not None:
            self.layers.unhook()
        self.batches.remove()
        self.events.remove()
        self.scale.remove()
        self.backward.remove()
        self.memory.close()

    def begin(self, number: int) -> None:
        self.row = {"step": number, "optimizer_steps": 0, "skipped_steps": 0}
        self.losses: list[Tensor] = []
        self.norms: list[Tensor] = []
        self.unscaled: dict[int, Tensor] = {}
        self.stepped: list[Any] = []
        self.indices: list[int] = []
        self.rate: float | None = None
        self.is_read = number < FIRST_READ or self.reading.is_due()
        if self.layers is not None:
            _run_isolated(partial(self.layers.begin, number))
        self.started, self.cpu_ns = perf_counter_ns(), process_time_ns()

    def end(self, error: BaseException | None) -> Row:
        """Returns what is known of the step."""
        assert self.row is not None
        row, self.row = self.row, None
        row["wall_us"], row["cpu_us"] = (
            (perf_counter_ns() - self.started) / 1e3,
            (process_time_ns() - self.cpu_ns) / 1e3,
        )
        if self.layers is not None:
            _run_isolated(self.layers.end)
        row["learning_rate"] = self.rate
        row["error"] = None if error is None else type(error).__name__
        row |= dict.fromkeys(("loss", "gradient_norm", "held_bytes", *IN_USE))
        row["batch"] = json.dumps(self.indices[:MOST_INDICES]) if self.indices else None
        if self.losses:
            row["loss"] = sum(_read(self.losses))
        if self.is_read:
            with self.reading:
                row |= self._in_use()
                if self.norms:  # one norm for all optimizers of the step
                    row["gradient_norm"] = sum(norm**2 for norm in _read(self.norms)) ** 0.5
        else:
            self.unread_steps += 1
        self.losses, self.norms = [], []
        self.unscaled.clear()
        return row

    def _in_use(self) -> Row:
        """Returns what process and device hold, and how busy the device was; null where it is unknown."""
        process = self.memory.held_bytes()
        row: Row = {"held_bytes": process, "process_bytes": process}
        if torch.cuda.is_initialized():
            allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
            row |= {"held_bytes": allocated or process, "reserved_bytes": reserved or None}
            if self.has_utilization:
                try:
                    row["device_fraction"] = torch.cuda.utilization() / 100
                except Exception:  # no pynvml, or a driver that does not tell
                    self.has_utilization = False
        return row

    def update_fraction(self, before: State) -> float | None:
        """Returns norm of the change / norm before of all that the step trained; null if it trained nothing kept."""
        trained = {id(one): one for optimizer in self.stepped for one in parameters_of(optimizer)}
        with isolated():
            changes = [before.change_of(tensor) for tensor in trained.values()]
        whole = sum(norm for _, norm in changes)
        return float((sum(change for change, _ in changes) / whole) ** 0.5) if whole else None

    def note_losses(self, tensors: Any) -> None:
        """Notes the values that a backward pass begins with; those before a GradScaler scaled them."""
        if self.row is None:
            return
        for tensor in [tensors] if isinstance(tensors, Tensor) else tensors:
            loss = self.unscaled.get(id(tensor), tensor)
            if isinstance(loss, Tensor) and loss.numel() == 1:
                self.losses.append(loss)
        self.indices += self.batches.take()

    def _on_step(self, optimizer: Any, has_closure: bool) -> None:
        if self.row is not None:
            self.row["optimizer_steps"] += 1
            self._note(optimizer)
        else:
            self.outside_steps += 1

    def _on_skip(self, optimizer: Any, scale: Any) -> None:
        if self.row is not None:
            self.row["skipped_steps"] += 1
        else:
            self.outside_steps += 1

    def _note(self, optimizer: Any) -> None:
        self.stepped.append(optimizer)
        rates = [float(group["lr"]) for group in optimizer.param_groups if group.get("lr") is not None]
        self.rate = max([*rates, *([] if self.rate is None else [self.rate])], default=None)
        if self.is_read:
            with self.reading:
                # Of a DTensor what this process holds: the whole would take a collective, and other ranks may not read.
                gradients = [getattr(one.grad, "_local_tensor", one.grad) for one in parameters_of(optimizer)]
                self.norms += norms_of([one for one in gradients if one is not None and one.layout is torch.strided])
        if self.layers is not None and self.layers.is_due:
            self.layers.note(optimizer)


def parameters_of(optimizer: Any) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def norms_of(gradients: list[Tensor]) -> list[Tensor]:
    """Returns norms that make up that of all gradients, in few calls: it is asked at every step."""
    if all(gradient.is_cpu for gradient in gradients):
        return list(torch._foreach_norm(gradients)) if gradients else []
    # Each number that is read waits for the device: one of each dtype.
    groups: Any = _group_tensors_by_device_and_dtype([gradients])  # type: ignore[list-item]
    return [vector_norm(torch.stack(torch._foreach_norm(group))) for (group,), _ in groups.values()]


def _run_isolated(work: Callable[[], object]) -> None:
    try:
        _isolated(work)
    except Exception:
        return


def _isolated(work: Callable[[], Any]) -> Any:
    """Returns what `work` returns. Without a mode nothing but gradients must be off, in a tenth of the time."""
    if _len_torch_function_stack() or _len_torch_dispatch_stack() or peek_interpreter_stack() is not None:
        with isolated():
            return work()
    has_gradients = torch.is_grad_enabled()
    _set_grad_enabled(False)
    try:
        return work()
    finally:
        _set_grad_enabled(has_gradients)


def _read(values: list[Tensor]) -> list[float]:
    """Returns the numbers, all at once: each that is read waits for the device."""
    if len(values) == 1:
        return [float(_isolated(values[0].item))]
    return list(_isolated(lambda: torch.stack([value.detach().double().reshape(()) for value in values]).tolist()))


class ProcessMemory:
    """Tells how many bytes the process holds. The file stays open: opening it takes longer than reading it."""

    PATH = "/proc/self/statm"

    def __init__(self) -> None:
        self.page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
        self.process, self.file = os.getpid(), -1

    def held_bytes(self) -> int | None:
        """Returns the bytes; null where the system does not tell."""
        if self.process != os.getpid():  # a fork: the file is that of the process before
            self.close()
        try:
            if self.file < 0:
                self.process, self.file = os.getpid(), os.open(self.PATH, os.O_RDONLY)
            return int(os.pread(self.file, 200, 0).split()[1]) * self.page
        except OSError:
            return None

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
        self.file = -1
