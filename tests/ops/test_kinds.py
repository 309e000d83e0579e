"""Ops that do the same have the same kind, whatever their framework calls them."""

import pytest

from nbkit.ops.kinds import DRAWS, EXACT, NAMES, PASSING, op_kind

SAME = {
    "matmul": "aten.mm.default aten.linear.default torch.nn.functional.linear matmul_v2 mul pd_op.matmul MatMul Gemm "
    "broadcast_matmul batch_matmul",
    "multiply": "aten.mul.Tensor aten.mul_.Scalar Mul elementwise_mul broadcast_mul scalar_mul _operator.mul",
    "add": "aten.add.Tensor add_n elementwise_add pd_op.add Add sum Sum",
    "reduce_sum": "aten.sum.dim_IntList reduce_sum ReduceSum",
    "layer_norm": "aten.layer_norm.default aten.native_layer_norm.default layer_norm LayerNormalization",
    "layer_norm gradient": "aten.native_layer_norm_backward.default layer_norm_grad layer_norm_param_grad",
    "sigmoid": "aten.sigmoid.default sigmoid_v2 Sigmoid",
    "softmax": "aten._softmax.default softmax Softmax",
    "cast": "aten._to_copy.default aten.to.dtype cast Cast",
    "reshape": "aten.view.default aten._unsafe_view.default reshape2 unsqueeze2 Reshape",
    "permute": "aten.t.default aten.transpose.int transpose2 Transpose",
    "permute gradient": "transpose2_grad",
    "and": "aten.bitwise_and.Tensor aten.logical_and.default And",
    "less_equal": "aten.le.Tensor LessOrEqual less_equal",
    "boxing": "hierarchical_parallel_cast",
}


@pytest.mark.parametrize("kind", SAME)
def test_spellings_of_all_frameworks_meet(kind):
    assert {op_kind(op) for op in SAME[kind].split()} == {kind}


def test_an_unknown_op_keeps_its_own_name():
    assert [op_kind(op) for op in ("wkv", "wkv_grad", "aten.atan2.default", "aten.log2.default", None)] == [
        "wkv",
        "wkv gradient",
        "atan2",
        "log2",
        "",
    ]


def test_every_name_has_one_kind():
    names = [name for names in NAMES.values() for name in names.split()]
    assert len(names) == len(set(names))
    assert set(NAMES) > PASSING


@pytest.mark.parametrize(
    "op", "aten.hstack.default aten.clamp_min.default aten.argmax.default aten.fmax.default".split()
)
def test_what_moves_or_picks_elements_rounds_nothing(op):
    assert op_kind(op) in EXACT


@pytest.mark.parametrize("op", ["aten._to_copy.default", "aten.index_add.default", "aten.cumsum.default", "Cast"])
def test_casts_and_sums_round(op):
    assert op_kind(op) not in EXACT


@pytest.mark.parametrize(
    "op",
    "aten.bernoulli_.float aten.exponential_.default aten.poisson.default aten.native_dropout.default RandomNormalLike "
    "Multinomial uniform_random pd_op.gaussian Dropout normal".split(),
)
def test_random_numbers_of_any_framework(op):
    assert op_kind(op) in DRAWS
    assert op_kind("Normalize") not in DRAWS
