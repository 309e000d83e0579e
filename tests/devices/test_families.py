"""Ops without a time of their own have that of the measured one of their kind."""

import pytest

from nbkit.devices.families import measured_for

MEASURED = {
    f"aten.{name}" for name in ("mm", "bmm", "add", "fill_", "convolution", "empty", "view", "sort", "amax", "exp")
}
LIKE = {
    "aten.zeros.default": "fill_",
    "aten.zero_.default": "fill_",
    "aten.maximum.default": "add",
    "aten.vdot.default": "mm",
    "aten._scaled_dot_product_flash_attention_for_cpu.default": "bmm",
    "aten.addbmm.default": "bmm",
    "aten.conv_depthwise3d.default": "convolution",
    "aten.resize_.default": "empty",
    "aten.topk.default": "sort",
    "aten.kthvalue.default": "amax",
    "aten._foreach_exp_.default": "exp",
}


@pytest.mark.parametrize("op", LIKE)
def test_an_op_is_as_fast_as_its_kin(op):
    assert measured_for(op, True, MEASURED) == f"aten.{LIKE[op]}"
