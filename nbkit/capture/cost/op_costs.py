"""Counts FLOPs and bytes of each op that runs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.cost.communication import NAMESPACES, communication_bytes
from nbkit.capture.cost.traffic import Traffic
from nbkit.capture.recorder.op_forms import is_reshaping
from nbkit.flops import formulas

# They multiply and add no more than once per element: copies and moves, reductions, norms, pooling, losses, updates.
# Names stand for their backward (`_backward`), and in-place (`_`) forms, too.
NO_PRODUCTS = frozenset(
    """
    _adaptive_avg_pool2d _adaptive_avg_pool3d _amp_foreach_non_finite_check_and_unscale _amp_update_scale
    _assert_async _assert_tensor_metadata _cdist _fused_adagrad _fused_adam _fused_adamw _fused_dropout
    _fused_rms_norm _fused_sgd _local_scalar_dense _log_softmax _native_batch_norm_legit _nested_tensor_from_mask
    _pdist _safe_softmax _softmax _thnn_fused_gru_cell _thnn_fused_lstm_cell _thnn_fused_lstm_cell_impl _to_copy
    _unique2 _unsafe_index _unsafe_index_put _weight_norm_interface adaptive_avg_pool2d all amax amin any arange
    argmax argmin argsort avg_pool1d avg_pool2d avg_pool3d batch_norm bernoulli binary_cross_entropy bincount
    bucketize cat clamp_max clamp_min clone col2im constant_pad_nd copy count_nonzero cross cummax cummin cumprod
    cumsum detach diff dist dropout embedding embedding_dense equal exponential fill flip fmod full_like gather glu
    grid_sampler_2d histc hstack huber_loss im2col index index_add index_copy index_fill index_put index_select
    is_same_size isin kl_div kthvalue layer_norm lift_fresh linalg_vector_norm linspace logcumsumexp logsumexp
    masked_fill masked_scatter masked_select max max_pool2d max_pool2d_with_indices max_pool3d_with_indices mean
    median min mode mse_loss msort multinomial nan_to_num nanmedian native_batch_norm native_dropout
    native_group_norm native_layer_norm new_full new_ones new_zeros nll_loss nll_loss2d nonzero norm normal
    ones_like pixel_shuffle prod rand_like randint_like randn_like random reflection_pad1d reflection_pad2d renorm
    repeat repeat_interleave replication_pad2d resize resize_as roll rot90 scatter scatter_add scatter_reduce
    searchsorted select select_scatter set slice slice_scatter smooth_l1_loss soft_margin_loss softplus sort
    split_with_sizes_copy squeeze_copy stack std std_mean sum take topk trace tril tril_indices triu triu_indices
    unfold_backward uniform unique unique_consecutive unsafe_chunk unsafe_split upsample_bilinear2d
    upsample_nearest1d upsample_nearest2d value_selecting_reduction var var_mean where zero zeros_like
    """.split()
)


class OpCost(NamedTuple):
    """Holds what one call costs; `flops` is null where no rule tells."""

    slot: int
    dtype: torch.dtype | None
    flops: int | None
    read_bytes: int
    written_bytes: int
    communication_bytes: int | None


class OpCosts:
    """Keeps the costs of a step's ops in their order."""

    def __init__(self) -> None:
        self.rows: list[OpCost] = []
        self.formulas = formulas()
        self.rules: dict[OpOverload, Callable[..., int] | int | None] = {}
        self.without_rule: dict[str, int] = {}
        self.traffic = Traffic()

    def note(self, slot: int, func: OpOverload, args: Any, kwargs: Any, out: Any) -> None:
        """Counts one call that returned `out`."""
        if func not in self.rules:
            self.rules[func] = self._rule(func)
        rule = self.rules[func]
        flops = _called(rule, func, args, kwargs) if callable(rule) else rule
        if flops is None:
            self.without_rule[str(func)] = self.without_rule.get(str(func), 0) + 1
        read, written = self.traffic.bytes_of(func, args, kwargs, out)
        sent = communication_bytes(func, args, kwargs, out)
        self.rows.append(OpCost(slot, _compute_dtype(args, out), flops, read, written, sent))

    def _rule(self, func: OpOverload) -> Callable[..., int] | int | None:
        """Returns the formula of an op, 0 if it holds no products, None if neither is known."""
        if (formula := self.formulas.get(f"{func.namespace}.{func._opname}")) is not None:
            return formula
        takes_tensors = any("Tensor" in str(argument.type) for argument in func._schema.arguments)
        is_plain = torch.Tag.pointwise in func.tags or not takes_tensors or self.traffic.moves_nothing(func)
        is_known = is_reshaping(func) or func._opname.startswith("_foreach_")
        is_collective = func.namespace in NAMESPACES
        is_form = not NO_PRODUCTS.isdisjoint(_forms(func._opname))
        return 0 if is_plain or is_collective or (func.namespace == "aten" and (is_known or is_form)) else None

    def unknown(self) -> dict[str, int]:
        """Returns the ops that have no rule for their FLOPs, with their calls."""
        return dict(sorted(self.without_rule.items()))


def _forms(name: str) -> set[str]:
    """Returns the names under which a rule of an op may stand."""
    plain = name.removesuffix("_").removesuffix("_backward_data").removesuffix("_backward")
    return {name, plain, plain.removesuffix("_forward")}


def _called(formula: Callable[..., int], func: OpOverload, args: Any, kwargs: Any) -> int | None:
    values = [
        args[place] if place < len(args) else kwargs.get(argument.name, argument.default_value)
        for place, argument in enumerate(func._schema.arguments)
    ]
    types = [str(argument.type) for argument in func._schema.arguments]
    shapes = [
        [] if value is None and "Tensor" in kind else _shapes(value) for value, kind in zip(values, types, strict=True)
    ]
    try:
        return int(formula(*shapes))
    except Exception:  # one that the user registered, too, must not end the step
        return None


def _shapes(held: Any) -> Any:
    if isinstance(held, Tensor):
        return list(held.shape)
    return [_shapes(item) for item in held] if isinstance(held, list | tuple) else held


def _compute_dtype(args: Any, out: Any) -> torch.dtype | None:
    """Returns the dtype of the largest floating tensor that goes in or out."""
    largest, most = None, -1
    for held in (args, (out,)):
        for item in held:
            for tensor in item if isinstance(item, list | tuple) else (item,):
                if isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.numel() > most:
                    largest, most = tensor.dtype, tensor.numel()
    return largest
