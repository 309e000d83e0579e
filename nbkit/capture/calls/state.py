"""Reads what is set around a call and may change what it computes, and sets it again around its replay."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import torch

from nbkit.capture.calls.encode import NAMED

# What may choose other kernels on a device: below torch.backends.
DEVICE_FLAGS = (
    *(f"cudnn.{name}" for name in ("enabled", "benchmark", "deterministic", "allow_tf32")),
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
)


def call_state() -> dict[str, Any]:
    """Returns gradient mode, autocast, default dtype, threads and precision, as JSON data."""
    state: dict[str, Any] = {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }
    if torch.is_autocast_enabled("cpu"):
        state["autocast"] = {"cpu": str(torch.get_autocast_dtype("cpu")).removeprefix("torch.")}
    return state


def device_state() -> dict[str, Any]:
    """Returns which kernels devices choose, as JSON data: read once for a step."""
    flags: dict[str, bool] = {}
    for name in DEVICE_FLAGS:
        try:
            value = attrgetter(name)(torch.backends)
        except (AttributeError, RuntimeError):  # another torch; or TF32 was set in two ways that torch does not mix
            continue
        if isinstance(value, bool):
            flags[name] = value
    return {"device_flags": flags}


@contextmanager
def as_recorded(state: Mapping[str, Any]) -> Iterator[None]:
    """Sets what call_state() and device_state() have read, and takes it back.

    Autocast has been applied to the inputs of aten ops. Raises KeyError, ValueError, TypeError or RuntimeError on what
    those have not made.
    """
    now = call_state() | device_state()
    # Only what differs: torch.use_deterministic_algorithms() imports torch's compiler, which would delay each replay.
    other = {name: value for name, value in state.items() if now.get(name) != value}
    try:
        with torch.inference_mode(state.get("inference") is True):
            set_state(other)
            yield
    finally:
        set_state({name: value for name, value in now.items() if name in other})


def set_state(state: Mapping[str, Any]) -> None:
    """Sets what of that is among `state`, all but inference mode and autocast."""
    if "grad" in state:
        torch.set_grad_enabled(bool(state["grad"]))
    if "default_dtype" in state:
        torch.set_default_dtype(NAMED["dtype"][state["default_dtype"]])
    if "threads" in state and 0 < int(state["threads"]) <= 4096:
        torch.set_num_threads(int(state["threads"]))
    if "matmul_precision" in state:
        torch.set_float32_matmul_precision(str(state["matmul_precision"]))
    if "deterministic" in state:
        torch.use_deterministic_algorithms(bool(state["deterministic"]))
    flags = state.get("device_flags")
    if isinstance(flags, Mapping):
        for name, now in device_state()["device_flags"].items():
            if isinstance(flags.get(name), bool) and flags[name] != now:
                holder, _, flag = name.rpartition(".")
                setattr(attrgetter(holder)(torch.backends), flag, flags[name])
