"""The families hold what torch's tags and schemas say of aten's ops, and only ops that there are."""

import pytest
import torch
from torch._ops import OpOverload

from nbkit.ops import families, rounding, undeclared
from nbkit.ops.flops.convolutions import CONVOLUTIONS

# Attention and recurrent layers draw where they drop out, and their arguments seldom say so; nested tensors are none
# that recordings know; the choice of a kernel is no number.
NO_DRAWS = ("attention", "_rnn", "lstm", "gru", "rnn_", "_nested_", "_fused_sdp_choice")
# Parts of tensors in other layouts, and what is taken apart for autograd.
NO_VIEWS = frozenset(
    "_indices indices _values values ccol_indices col_indices crow_indices row_indices coalesce _nested_get_values "
    "_nested_view_from_buffer _nested_view_from_jagged _sparse_broadcast_to _test_autograd_multiple_dispatch_view "
    "_make_dual _unpack_dual slice_inverse".split()
)
# Views of which the elements are others: conjugates and negatives.
OTHER_ELEMENTS = frozenset("_conj conj adjoint mH matrix_H _neg_view".split())
# Of another namespace, and of torch before 2.13.
ELSEWHERE = frozenset("wait_tensor rename_ allreduce_ allgather_ broadcast_ reduce_scatter_ recv_".split())
FAMILIES = {
    name: frozenset(value)
    for module in (families, rounding, undeclared)
    for name, value in vars(module).items()
    if name.isupper() and not isinstance(value, str)
}


def overloads() -> dict[str, list[OpOverload]]:
    """Returns all overloads of aten's ops by name."""
    found: dict[str, list[OpOverload]] = {}
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if namespace == "aten" and hasattr(torch.ops.aten, packet):
            found.setdefault(packet, []).append(getattr(getattr(torch.ops.aten, packet), overload or "default"))
    return found


@pytest.fixture(scope="module")
def ops():
    return overloads()


def test_every_op_that_torch_tags_as_drawing_draws(ops):
    tagged = {name for name, known in ops.items() if any(torch.Tag.nondeterministic_seeded in op.tags for op in known)}
    drawing = {name for name in tagged if not any(part in name for part in NO_DRAWS)}
    assert drawing <= families.DRAWS | families.DROPOUTS
    known = {name for name in families.DRAWS | families.DROPOUTS if name in ops}
    # torch tags an overload without arguments of the like not at all.
    assert {name for name in known - tagged if not name.endswith("_")} <= {"_sample_dirichlet"}


def test_every_view_of_torch_keeps_its_elements_or_takes_a_part(ops):
    views = {name for name, known in ops.items() if any(op.is_view for op in known)}
    forms = families.FORMS | families.PARTS | families.QUIET_VIEWS
    assert views - NO_VIEWS - OTHER_ELEMENTS <= forms


def test_in_place_ops_that_draw_write_over_what_they_are_given(ops):
    drawn = {f"{name.rstrip('_')}_" for name in families.DRAWS} & ops.keys()
    assert drawn - families.OVERWRITING <= {"_fill_mem_eff_dropout_mask_"}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_holds_ops_that_there_are(ops, name):
    # The in-place form of each is named, whether torch has it or not.
    assert {op for op in FAMILIES[name] if op not in ops and op.rstrip("_") not in ops} <= ELSEWHERE


def test_what_torch_tags_as_a_reduction_works_along_dimensions(ops):
    tagged = {name for name, known in ops.items() if any(torch.Tag.reduction in op.tags for op in known)}
    assert tagged <= families.ALONG_DIMS


def test_products_of_matrices_have_them_last(ops):
    for name in families.MATRIX_PRODUCTS & ops.keys():
        arguments = next(op for op in ops[name] if op._overloadname == "default")._schema.arguments
        tensors = [argument for argument in arguments if str(argument.type) == "Tensor"]
        assert families.FACTORS[name] == (len(tensors) - 2, len(tensors) - 1)


def test_what_has_the_formula_of_a_convolution_is_one():
    counted = {name.removeprefix("aten.") for name in CONVOLUTIONS if "backward" not in name}
    # That over time has its channels last, which no rule reads.
    assert counted - families.CONVOLUTIONS == {"conv_tbc"}
