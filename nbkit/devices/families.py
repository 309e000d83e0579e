"""Names for each aten op the measured one that takes about as long per byte or FLOP."""

from collections.abc import Collection

# The measured op, and those that stand with it.
ALIKE = {
    "mm": "addmm _addmm_activation linear addmv mv addr dot _scaled_mm _int_mm mkldnn_linear mkldnn_rnn_layer",
    "bmm": "baddbmm addbmm _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention",
    "convolution": "_convolution mkldnn_convolution cudnn_convolution _slow_conv2d_forward convolution_overrideable",
    "convolution_backward": "convolution_backward_overrideable",
    "add": "sub rsub where minimum clamp clamp_min clamp_max eq ne lt le gt ge logical_and logical_or logical_not "
    "bitwise_and bitwise_or bitwise_not abs sign square lerp addcmul mse_loss mse_loss_backward nll_loss_backward",
    "masked_fill": "_unsafe_masked_index tril triu masked_scatter",
    "div": "reciprocal remainder fmod floor_divide addcdiv",
    "relu": "leaky_relu hardtanh hardswish hardsigmoid relu6 threshold",
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
    "empty": "empty_like empty_strided empty_permuted new_empty new_empty_strided resize_",
    "unsqueeze": "squeeze",
    "split": "split_with_sizes chunk unsafe_split unsafe_chunk",
    "cat": "hstack vstack dstack split_with_sizes_copy repeat_interleave",
    "constant_pad_nd": "slice_backward select_backward slice_scatter select_scatter diagonal_backward "
    "as_strided_scatter",
    "fill_": "zero_ ones full zeros_like ones_like full_like new_zeros new_ones new_full arange linspace "
    "scalar_tensor eye",
    "uniform_": "rand rand_like random_ randint randint_like randperm",
    "normal_": "randn randn_like normal",
    "bernoulli_": "bernoulli native_dropout multinomial",
    "sum": "count_nonzero nansum trace",
    "mean": "var var_mean std std_mean norm linalg_vector_norm renorm nll_loss_forward nll_loss2d_forward cumprod",
    "amax": "amin max min argmax argmin all any aminmax prod median kthvalue cummax cummin logcumsumexp",
    "_softmax": "softmax",
    "_log_softmax": "logsumexp log_softmax",
    "native_layer_norm": "native_group_norm _fused_rms_norm rms_norm layer_norm",
    "native_layer_norm_backward": "native_group_norm_backward _fused_rms_norm_backward",
    "native_batch_norm": "_native_batch_norm_legit _native_batch_norm_legit_functional cudnn_batch_norm "
    "_batch_norm_with_update miopen_batch_norm",
    "native_batch_norm_backward": "cudnn_batch_norm_backward batch_norm_backward miopen_batch_norm_backward",
    "max_pool2d_with_indices": "avg_pool2d _adaptive_avg_pool2d max_pool3d_with_indices avg_pool3d upsample_nearest2d "
    "upsample_bilinear2d grid_sampler_2d adaptive_max_pool2d",
    "max_pool2d_with_indices_backward": "avg_pool2d_backward _adaptive_avg_pool2d_backward upsample_nearest2d_backward "
    "upsample_bilinear2d_backward",
    "embedding": "_embedding_bag",
    "index": "index_select _unsafe_index",
    "gather": "take take_along_dim",
    "scatter_add": "scatter scatter_reduce index_put _unsafe_index_put index_add index_copy index_fill scatter_value",
    "sort": "topk unique _unique2 msort argsort searchsorted bucketize",
    "addcdiv_": "_fused_adam _fused_adamw _fused_sgd _fused_adagrad",
}  # fmt: skip
MEASURED_FOR = {name: measured for measured, names in ALIKE.items() for name in names.split()}
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
