"""Works out after the step which tensors required a gradient at which op."""

from collections.abc import Mapping

import numpy as np

from nbkit.capture.frames.tensor_columns import TensorColumns

# Floating-point outputs that autograd leaves out, all but the first of these ops; torch tells nowhere else than in
# tools/autograd/derivatives.yaml (output_differentiability).
ONLY_FIRST = frozenset(
    f"aten.{name}"
    for name in (
        "native_layer_norm native_batch_norm _native_batch_norm_legit _batch_norm_with_update "
        "_batch_norm_with_update_functional cudnn_batch_norm miopen_batch_norm "
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention "
        "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
        "nll_loss_forward nll_loss2d_forward multilabel_margin_loss_forward log_sigmoid_forward "
        "_ctc_loss _cudnn_ctc_loss _embedding_bag"
    ).split()
)


def only_first(names: list[str]) -> np.ndarray:
    """Returns whether each op, by name, has a differentiable output in the first position alone."""
    return np.array([name.rpartition(".")[0] in ONLY_FIRST for name in names], dtype=bool)


def requires_grad_column(
    tensors: TensorColumns,
    alive: Mapping[int, bool],
    row: np.ndarray,
    record: np.ndarray,
    is_output: np.ndarray,
    counts: np.ndarray,
) -> np.ndarray:
    """Returns whether each tensor required a gradient at that op; rows are ordered by op.

    A tensor leaves the dispatcher before autograd marks it, so what was read of an output is too early: it requires a
    gradient if its op made an autograd node (`counts`, false also for an output that is not differentiable) and one of
    the inputs required one. `alive` are the answers of those that survived the step: they settle what was not worked
    out, such as the result of a custom Function, but not since when.
    """
    kinds = [dtype.is_floating_point or dtype.is_complex for *_, dtype in tensors.geometries]
    may_need = np.array(kinds, dtype=bool)[tensors.geometry]
    may_need[[number for number, answer in alive.items() if not answer]] = False
    needs = tensors.requires_grad.copy()
    positions = np.flatnonzero(counts)
    since = _since(needs, may_need, positions, row, record, is_output)
    missed = [number for number, answer in alive.items() if answer and since[number] == len(row)]
    if missed:
        needs[missed] = True
        since = _since(needs, may_need, positions, row, record, is_output)
    column: np.ndarray = np.arange(len(row)) >= np.array(since, dtype=np.int64)[record]
    return column


def _since(
    needs: np.ndarray,
    may_need: np.ndarray,
    positions: np.ndarray,
    row: np.ndarray,
    record: np.ndarray,
    is_output: np.ndarray,
) -> list[int]:
    """Returns the position in the column from which on each record requires a gradient; its length for never."""
    never = len(row)
    since: list[int] = np.where(needs, 0, never).tolist()
    allowed = may_need.tolist()
    current, is_marked = -1, False
    for position, op, number, output in zip(
        positions.tolist(), *(values[positions].tolist() for values in (row, record, is_output)), strict=True
    ):
        if op != current:
            current, is_marked = op, False
        if not output:
            is_marked = is_marked or since[number] < never
        elif is_marked and since[number] == never and allowed[number]:
            since[number] = position
    return since
