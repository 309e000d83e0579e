"""FLOPs from shapes, against torch's own counter."""

import json

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from nbkit.timeline.flops import op_flops


def flops_of(op, *shapes, known=-1):
    return op_flops([op], np.array([known]), [json.dumps(shapes)]).tolist()[0]


@pytest.mark.parametrize(
    ("op", "run", "shapes"),
    [
        ("aten.mm.default", torch.mm, [(3, 4), (4, 5)]),
        ("aten.addmm.default", torch.addmm, [(5,), (3, 4), (4, 5)]),
        ("aten.bmm.default", torch.bmm, [(2, 3, 4), (2, 4, 5)]),
        ("aten.baddbmm.default", torch.baddbmm, [(2, 3, 5), (2, 3, 4), (2, 4, 5)]),
    ],
)
def test_flops_are_those_of_torchs_counter(op, run, shapes):
    with FlopCounterMode(display=False) as counter:
        run(*[torch.ones(shape) for shape in shapes])
    assert flops_of(op, *shapes) == counter.get_total_flops() > 0


def test_flops_of_attention_are_torchs_formula():
    query, key, value = (2, 3, 7, 8), (2, 3, 5, 8), (2, 3, 5, 4)
    expected = sdpa_flop_count(query, key, value)
    for kind in ("flash_attention", "efficient_attention", "flash_attention_for_cpu"):
        assert flops_of(f"aten._scaled_dot_product_{kind}.default", query, key, value) == expected == 2 * 6 * 7 * 5 * 12


def test_what_the_profiler_knows_goes_first():
    assert flops_of("aten.mm.default", (3, 4), (4, 5), known=7) == 7
    assert flops_of("aten.conv2d.default", (1, 1, 3, 3), known=99) == 99
    assert flops_of("aten.mul.Tensor", (3, 4), known=0) == -1


def test_shapes_that_do_not_fit_are_not_known():
    assert flops_of("aten.mm.default", []) == -1
    assert flops_of("aten.mm.default") == -1
    assert op_flops(["aten.mm.default"], np.array([-1]), [None]).tolist() == [-1]
