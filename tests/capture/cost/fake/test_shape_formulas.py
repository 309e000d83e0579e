"""What the rule of products by groups says is what torch's kernel on the CPU returns."""

import pytest
import torch
from torch import Tensor

import nbkit

ENDS = torch.tensor([4, 8, 16], dtype=torch.int32)
CALLS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Tensor | None]] = {
    "rows by group": ((16, 8), (3, 8, 20), ENDS),
    "depth by group": ((8, 16), (16, 20), ENDS),
    "columns by group": ((3, 8, 4), (4, 16), ENDS),
    "one group each": ((3, 8, 4), (3, 4, 20), None),
}


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="this torch has no products by groups")
@pytest.mark.parametrize("name", CALLS)
def test_a_product_by_groups_has_on_shapes_alone_what_the_kernel_returns(name):
    left, right, ends = CALLS[name]
    try:
        returned = torch._grouped_mm(torch.ones(left), torch.ones(right), offs=ends)
    except RuntimeError as error:
        pytest.skip(f"this torch computes none of float32 on the CPU: {error}")
    with nbkit.opcost() as trace:
        torch._grouped_mm(torch.ones(left), torch.ones(right), offs=ends)
    (row,) = trace.ops.index[trace.ops["op"] == "aten._grouped_mm.default"]
    outputs = trace.tensors[(trace.tensors["op_id"] == row) & (trace.tensors["role"] == "output")]
    said = outputs[["shape", "stride", "dtype"]].to_numpy().tolist()
    assert said == [[str([*returned.shape]), str([*returned.stride()]), "float32"]]
