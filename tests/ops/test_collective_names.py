"""Tests the names of collectives, and what C++ calls a dtype."""

import pytest
import torch

from nbkit.ops.collectives import called_collective, dispatched_collective, named_collective, run_collective_name
from nbkit.ops.scalar_types import dtype_named, item_bytes


@pytest.mark.parametrize(
    ("read", "name", "kind"),
    [
        (dispatched_collective, "c10d._allgather_base_.default", "all_gather"),
        (dispatched_collective, "c10d.reduce_scatter_tensor_coalesced_", "reduce_scatter"),
        (dispatched_collective, "c10d.recv_any_source_.default", "recv"),
        (dispatched_collective, "_c10d_functional.irecv.default", "recv"),
        (dispatched_collective, "c10d.monitored_barrier_.default", "barrier"),
        (dispatched_collective, "_c10d_functional.all_to_all_single.default", "all_to_all"),
        (dispatched_collective, "_c10d_functional.wait_tensor.default", None),
        (dispatched_collective, "aten.gather.default", None),
        (called_collective, "torch.distributed.isend", "send"),
        (called_collective, "torch.distributed.reduce", "reduce"),
        (called_collective, "torch.optim.reduce", None),
        (run_collective_name, "gloo:all_reduce", "all_reduce"),
        (run_collective_name, "nccl:_reduce_scatter_base", "reduce_scatter"),
        (run_collective_name, "nccl:recv 0<-1", "recv"),
        (run_collective_name, "nccl:coalesced", None),
        (named_collective, "all_to_allv", "all_to_all"),
        (named_collective, "wait", None),
    ],
)
def test_each_name_of_a_collective_is_one_kind(read, name, kind):
    assert read(name) == kind


@pytest.mark.parametrize(
    "dtype",
    ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool"],
)
def test_each_dtype_is_read_from_what_torch_calls_its_tensors(dtype):
    of_torch = getattr(torch, dtype)
    word = torch.empty(0, dtype=of_torch).type().removeprefix("torch.").removesuffix("Tensor")
    assert dtype_named(word) == dtype
    assert item_bytes(dtype) == of_torch.itemsize


def test_other_words_of_dtypes():
    assert dtype_named("c10::BFloat16") == "bfloat16"
    assert dtype_named("c10::complex<float>") == "complex64"
    assert dtype_named("Float8_e4m3fn") == "float8_e4m3fn"
    assert item_bytes("float8_e4m3fn") == 1
    assert dtype_named("TensorList") is dtype_named("") is dtype_named(None) is None
