"""Names for each aten op the measured one that takes about as long per byte or FLOP."""

from collections.abc import Collection

from nbkit.ops.families import family

# The measured op, and those that stand with it, in the words of `nbkit.ops.families`.
ALIKE = {
    "mm": "LAYER_PRODUCTS addr mkldnn_linear mkldnn_rnn_layer",
    "bmm": "BATCHED_PRODUCTS ATTENTION_KERNELS addbmm",
    "convolution": "CONVOLUTIONS",
    "convolution_backward": "convolution_backward_overrideable",
    "add": "SUBTRACTS EXTREMES CLAMPS COMPARISONS LOGIC where abs sign square lerp addcmul mse_loss mse_loss_backward "
    "nll_loss_backward",
    "masked_fill": "_unsafe_masked_index tril triu masked_scatter",
    "div": "reciprocal remainder fmod floor_divide addcdiv",
    "relu": "RELUS leaky_relu hardswish hardsigmoid relu6 threshold",
    "threshold_backward": "leaky_relu_backward hardtanh_backward hardswish_backward",
    "exp": "exp2 expm1 elu celu selu exponential_",
    "log": "log1p log2 log10 softplus log_sigmoid_forward xlogy",
    "tanh": "mish atan atan2 asin acos sinh cosh",
    "sin": "cos tan polar",
    "erf": "erfc erfinv special_erfcx",
    "silu_backward": "mish_backward elu_backward softplus_backward log_sigmoid_backward glu_backward",
    "silu": "glu",
    "clone": "_to_copy copy repeat im2col col2im roll flip unfold_backward pixel_shuffle _reshape_copy channel_shuffle",
    "copy_": "resize_as_",
    "view": "_unsafe_view _reshape_alias as_strided set_",
    "detach": "alias lift_fresh",
    "_local_scalar_dense": "item",
    "empty": "UNFILLED",
    "unsqueeze": "squeeze",
    "split": "split_with_sizes chunk unsafe_split unsafe_chunk",
    "cat": "JOINS split_with_sizes_copy repeat_interleave",
    "constant_pad_nd": "slice_backward select_backward slice_scatter select_scatter diagonal_backward "
    "as_strided_scatter",
    "fill_": "CONSTANTS RANGES zero_",
    "uniform_": "rand rand_like random_ randint randint_like randperm",
    "normal_": "randn randn_like normal",
    "bernoulli_": "bernoulli native_dropout multinomial",
    "sum": "count_nonzero nansum trace",
    "mean": "MEANS VECTOR_NORMS renorm nll_loss_forward nll_loss2d_forward cumprod",
    "amax": "PICKS amin all any aminmax prod logcumsumexp",
    "_softmax": "softmax",
    "_log_softmax": "logsumexp log_softmax",
    "native_layer_norm": "ROW_NORMS",
    "native_layer_norm_backward": "native_group_norm_backward _fused_rms_norm_backward",
    "native_batch_norm": "BATCH_NORMS",
    "native_batch_norm_backward": "cudnn_batch_norm_backward batch_norm_backward miopen_batch_norm_backward",
    "max_pool2d_with_indices": "avg_pool2d _adaptive_avg_pool2d max_pool3d_with_indices avg_pool3d upsample_nearest2d "
    "upsample_bilinear2d grid_sampler_2d adaptive_max_pool2d",
    "max_pool2d_with_indices_backward": "avg_pool2d_backward _adaptive_avg_pool2d_backward upsample_nearest2d_backward "
    "upsample_bilinear2d_backward",
    "embedding": "_embedding_bag",
    "index": "index_select _unsafe_index",
    "gather": "take take_along_dim",
    "scatter_add": "INDEX_WRITES",
    "sort": "SORTS unique _unique2 msort argsort searchsorted bucketize",
    "addcdiv_": "_fused_adam _fused_adamw _fused_sgd _fused_adagrad",
}  # fmt: skip
MEASURED_FOR = {name: measured for measured, names in ALIKE.items() for name in family(names)}
MOVES, MOVES_NOTHING = "add", "view"


def measured_for(op: str, is_moving: bool, measured: Collection[str]) -> str:
    """Returns the name (aten.mm) of the measured op that stands for `op`, given with its overload or without.

    One of no family is taken for an addition if it moves bytes, else for a view.
    """
    if op in measured:
        return op
    namespace, _, rest = op.partition(".")
    name = rest.partition(".")[0].removeprefix("_foreach_") if namespace == "aten" else ""
    for candidate in (name, name.removesuffix("_"), f"{name}_"):
        for known in (candidate, MEASURED_FOR.get(candidate, "")):
            if f"aten.{known}" in measured:
                return f"aten.{known}"
    return f"aten.{MOVES if is_moving else MOVES_NOTHING}"
