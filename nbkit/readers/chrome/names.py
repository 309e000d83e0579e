"""Reads words of torch.profiler's Chrome traces: categories, device types, element sizes, frames of Python."""

import re
import sys
from functools import lru_cache

from nbkit.ops.scalar_types import dtype_named, item_bytes
from nbkit.timeline.events import HOST, KERNEL, RUNTIME

# The second group is how torch 1.8 to 1.11 wrote them.
BLOCK = "user_annotation"
KINDS = {
    "cpu_op": HOST,
    BLOCK: HOST,
    "kernel": KERNEL,
    "gpu_memcpy": KERNEL,
    "gpu_memset": KERNEL,
    "cuda_runtime": RUNTIME,
    "cuda_driver": RUNTIME,
    "hip_runtime": RUNTIME,
    "hip_driver": RUNTIME,
    "xpu_runtime": RUNTIME,
    "xpu_driver": RUNTIME,
    "mtia_runtime": RUNTIME,
    "privateuse1_runtime": RUNTIME,
    "privateuse1_driver": RUNTIME,
    "Operator": HOST,
    "Kernel": KERNEL,
    "Memcpy": KERNEL,
    "Memset": KERNEL,
    "Runtime": RUNTIME,
}
FORWARD_BACKWARD = ("fwdbwd", "forward_backward")
NPU_LAUNCH = "async_npu"
LAUNCHES = ("ac2g", "async_cpu_to_gpu", "async_gpu")
# Marks of the profiler itself that hold nothing but what meta says.
MARKS = ("Iteration Start: ", "Record Window End")
SKIPPED = {
    "gpu_user_annotation": "device-side copies of named blocks",
    "overhead": "overhead events of the profiler",
    "cuda_sync": "synchronizations as the device saw them (cuda_sync)",
}
# By c10::DeviceType.
DEVICE_TYPES = {
    0: "cpu",
    1: "cuda",
    6: "hip",
    9: "xla",
    12: "xpu",
    13: "mps",
    14: "meta",
    15: "hpu",
    19: "mtia",
    20: "privateuseone",
}
ACCELERATORS = {"xpu": "xpu", "mtia": "mtia", "privateuse1": "privateuseone"}
COLLECTIVE_BLOCK = re.compile(r"(gloo|nccl|mpi|ucc|xccl|hccl):\w+")
# Bytes per element, by what c10d ("BFloat16") and record_shapes ("c10::BFloat16") call a dtype.
PYTHON_MODULE = re.compile(r"nn\.Module: (.+?)(?:_\d+)?")
PYTHON_FRAME = re.compile(r"(.+)\((\d+)\): .*", re.DOTALL)
# What older versions of IPython call a cell.
CELL = "<ipython-input-"
# Of torch, and of nbkit, which may be installed from its own folder.
TORCH_PATH = re.compile(r"(^|(site|dist)-packages/)(torch|nbkit)/|/nbkit/(capture|command_line|magics|simulated)/")
INTERPRETER_PATH = re.compile(r"(^|.*/)lib/python3\.\d+/(?!(site|dist)-packages/)")


def element_bytes(dtype: object) -> int | None:
    """Returns the bytes of an element of a dtype as a trace names it; None if the name is not known."""
    name = dtype_named(dtype)
    return None if name is None else item_bytes(name)


@lru_cache
def is_collective(name: str) -> bool:
    """Returns whether a block of this name is a collective: "nccl:all_reduce"."""
    return COLLECTIVE_BLOCK.fullmatch(name) is not None


def user_line(frame: str) -> str | None:
    """Returns `path/file.py:12` of a Python frame "path/file.py(12): function"; None for torch's or Python's own."""
    match = PYTHON_FRAME.fullmatch(frame)
    if match is None:
        return None
    path = match[1].replace("\\", "/")
    return f"{path}:{match[2]}" if is_user_path(path) else None


def is_user_path(path: str) -> bool:
    """Returns whether a file is the user's, or a library's above torch: not torch's, Python's or ours."""
    first = path.partition("/")[0].removesuffix(".py")
    if (path.startswith("<") and not path.startswith(CELL)) or TORCH_PATH.search(path) or INTERPRETER_PATH.match(path):
        return False
    return first not in sys.stdlib_module_names or path.startswith("/")
