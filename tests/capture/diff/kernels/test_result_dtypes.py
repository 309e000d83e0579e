"""A result of another dtype than torch's own rules give is wrong, however near its values are."""

import pytest
import torch
import torch.nn.functional as F

from nbkit.capture.diff.result_dtypes import ResultDtypes
from nbkit.capture.replay.op_traits import traits_of
from tests.capture.diff.planted import compared, only, with_fault

aten = torch.ops.aten
SIZE = 300  # more than a piece of what is done in pieces


def drawn(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype)


NARROWED = {
    "aten.mm.default": lambda: drawn(3, 4) @ drawn(4, 5),
    "aten.add.Tensor": lambda: drawn(3) + drawn(3),
    "aten.sin.default": lambda: drawn(SIZE, SIZE).sin(),
    "aten.sum.dim_IntList": lambda: drawn(3, 4).sum(1),
    "aten._softmax.default": lambda: drawn(3, 4).softmax(1),
    "aten.embedding.default": lambda: F.embedding(torch.tensor([1, 0]), drawn(3, 4)),
    "aten.convolution.default": lambda: F.conv1d(drawn(2, 3, 9), drawn(4, 3, 3)),
    "aten.mul.Tensor": lambda: drawn(3, dtype=torch.bfloat16) * drawn(3),
}
RIGHT = {
    "promoted": lambda: drawn(3, dtype=torch.bfloat16) + drawn(3),
    "by a tensor without dimensions": lambda: drawn(3, dtype=torch.bfloat16) + torch.tensor(0.5),
    "by a number": lambda: torch.arange(3) * 0.5,
    "of integers": lambda: torch.arange(3).sum() / torch.tensor(2),
    "mean of float16 in float32": lambda: drawn(4, dtype=torch.float16).mean(dtype=torch.float32),
    "softmax in float32": lambda: drawn(3, 4, dtype=torch.bfloat16).softmax(1, dtype=torch.float32),
    "cast": lambda: drawn(3).to(torch.bfloat16),
    "in place": lambda: drawn(3).add_(drawn(3, dtype=torch.float64)),
    "out": lambda: torch.mul(drawn(3), 2, out=torch.empty(3, dtype=torch.float64)),
    "foreach": lambda: torch._foreach_add([drawn(3), drawn(2, dtype=torch.bfloat16)], 1),
    "norm of mixed dtypes": lambda: F.layer_norm(drawn(2, 4, dtype=torch.bfloat16), (4,), drawn(4), drawn(4)),
    "group norm of mixed dtypes": lambda: F.group_norm(drawn(2, 4, 3, dtype=torch.bfloat16), 2, drawn(4), drawn(4)),
    "attention": lambda: F.scaled_dot_product_attention(*(drawn(1, 2, 8, 16, dtype=torch.bfloat16) for _ in "qkv")),
    "complex": lambda: torch.complex(drawn(3), drawn(3)).abs() + torch.view_as_real(torch.fft.fft(drawn(3)))[:, 0],
    "linear algebra": lambda: (torch.linalg.slogdet(drawn(3, 3)), torch.linalg.lu_factor(drawn(3, 3))),
}


@pytest.mark.parametrize("op", NARROWED)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_another_dtype_is_wrong(op, dtype):
    row = only(with_fault(NARROWED[op], op, lambda func, args, out: out.to(dtype), ops=op))
    assert row["status"] == "dtype"
    assert row["message"] == f"dtype {str(dtype).removeprefix('torch.')}, expected float32"


@pytest.mark.parametrize("case", RIGHT)
def test_what_torch_gives_is_right(case):
    trace = compared(RIGHT[case])
    assert set(trace.diffs["status"]) == {"ok"}


def test_a_factory_tells_its_dtype_without_memory():
    endless = ([1 << 50], 1.0)
    assert ResultDtypes().of(traits_of(aten.full.default), endless, {"device": torch.device("cpu")}) == (torch.float32,)


def test_each_dtype_of_the_arguments_has_its_own_result():
    """What was found for one is remembered, not given for another; a tensor without dimensions does not promote."""
    known = ResultDtypes()
    for first in (torch.float32, torch.bfloat16, torch.int64):
        for second in (torch.float32, torch.float64):
            for shape in ((), (3,)):
                args = torch.ones(3, dtype=first), torch.ones(shape, dtype=second)
                for _ in "12":
                    assert known.of(traits_of(aten.add.Tensor), args, {}) == ((args[0] + args[1]).dtype,)
