"""What no schema and no tag says of ops is held to where torch says it."""

import re
from pathlib import Path

import pytest
import torch
import torchgen
import yaml
from torch import nn

from nbkit.ops import undeclared
from nbkit.ops.rounding import THRESHOLDS
from tests.capture.models import record

# Their other results are integers or masks, which need no gradient anyway.
NO_FLOATS = frozenset(
    "linalg_cholesky_ex cummax cummin linalg_inv_ex linalg_lu_factor_ex kthvalue max median nanmedian min mode sort "
    "topk frexp geqrf _unique _unique2 unique_dim unique_consecutive unique_dim_consecutive adaptive_max_pool2d "
    "adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d max_pool2d_with_indices max_pool3d_with_indices "
    "native_dropout _fused_dropout fake_quantize_per_tensor_affine_cachemask "
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams fake_quantize_per_channel_affine_cachemask "
    "_fused_moving_avg_obs_fq_helper _sparse_mm_reduce_impl _pack_padded_sequence".split()
)
# They run where nobody differentiates again.
GRADIENTS = re.compile(r".*_backward")


def with_one_gradient() -> set[str]:
    """Returns the ops of several results of which torch differentiates the first alone."""
    table = Path(torchgen.__file__).parent / "packaged" / "autograd" / "derivatives.yaml"
    entries = [entry for entry in yaml.safe_load(table.read_text()) if _is(entry)]
    return {re.split(r"[.(]", entry["name"])[0] for entry in entries}


def _is(entry: dict) -> bool:
    results = re.findall(r"Tensor(?:\(\w+\))?(?: (\w+))?", entry["name"].partition("->")[2])
    flags = entry.get("output_differentiability")
    formulas = " ".join(str(value) for name, value in entry.items() if name not in ("name", "output_differentiability"))
    uses_others = re.search(r"\bgrads\b|" + "|".join(rf"\bgrad_{name}\b" for name in results if name), formulas)
    has_one = uses_others is None if flags is None else flags[0] is True and not any(flags[1:])
    return len(results) > 1 and has_one


def test_ops_with_one_gradient_are_those_of_torchs_derivatives():
    expected = {name for name in with_one_gradient() - NO_FLOATS if not GRADIENTS.fullmatch(name)}
    assert expected - undeclared.ONLY_FIRST_DIFFERENTIABLE == set()


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x: torch.linalg.det(x), "aten._linalg_det.default"),
        (lambda x: torch.linalg.solve(x, torch.ones(2)), "aten._linalg_solve_ex.default"),
        (lambda x: torch._weight_norm(x, torch.ones(2, 1)), "aten._weight_norm_interface.default"),
        (lambda x: torch.nn.functional.layer_norm(x, (2,)), "aten.native_layer_norm.default"),
    ],
)
def test_a_decomposition_for_the_backward_pass_requires_no_gradient(function, op):
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    trace = record(lambda: function(x))
    at = trace.ops["op_id"][trace.ops["op"] == op]
    made = trace.tensors[(trace.tensors["role"] == "output") & trace.tensors["op_id"].isin(at)]
    assert made["requires_grad"].tolist() == [True] + [False] * (len(made) - 1)
    assert len(made) > 1


@pytest.mark.parametrize(
    "function", [nn.ReLU(), nn.Hardtanh(), nn.PReLU(), torch.abs], ids=["relu", "hardtanh", "prelu", "abs"]
)
def test_a_gradient_that_asks_for_the_side_of_a_border_is_a_threshold(function):
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    trace = record(lambda: function(x).sum().backward())
    backward = trace.ops[(trace.ops["level"] == "aten") & (trace.ops["phase"] == "backward")]
    assert THRESHOLDS & {op.split(".")[1] for op in backward["op"]}
