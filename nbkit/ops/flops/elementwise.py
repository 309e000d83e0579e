"""Holds the arithmetic of ops outside matrix products, in FLOPs for each element."""

from nbkit.ops.flops import counts, fused
from nbkit.ops.flops.counts import NORM, SOFTMAX, Count, nothing, per_argument, per_loss, per_result
from nbkit.ops.flops.linear_algebra import LINEAR_ALGEBRA
from nbkit.ops.flops.products import FUSED_ATTENTION
from nbkit.ops.flops.recurrent import GATES

# What ops that torch does not tag as pointwise do once for each element of their result: comparisons, activations,
# their derivatives. Ops that it tags count the same without being named here.
ONCE = """
    abs copysign eq floor_divide gcd ge gelu gt heaviside lcm le lt ne rsub threshold xlogy __irshift__ hardswish mish
    _add_relu _prelu_kernel rrelu_with_noise log_sigmoid_forward elu_backward gelu_backward hardshrink_backward
    hardsigmoid_backward hardswish_backward hardtanh_backward leaky_relu_backward log_sigmoid_backward mish_backward
    rrelu_with_noise_backward softplus_backward softshrink_backward threshold_backward
"""
TWICE = """
    glu glu_backward _prelu_kernel_backward native_dropout native_dropout_backward _fused_dropout _masked_scale addr
    dequantize
"""
THRICE = "addcmul addcdiv lerp cross linalg_cross quantize_per_tensor quantize_per_channel"
# Once for each element that they read; what they compare counts as well.
REDUCTIONS = """
    sum nansum mean amax amin aminmax _aminmax max min argmax argmin prod all any count_nonzero trace cumsum cumprod
    cummax cummin _cummax_helper _cummin_helper topk kthvalue median nanmedian mode histc bincount equal
    _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d mkldnn_adaptive_avg_pool2d
    segment_reduce
"""
POOLS = """
    avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices
    mkldnn_max_pool2d mkldnn_max_pool3d
"""
# Backward ops that add each element of the gradient to one place of their result.
ADDED_BACK = """
    max_pool2d_with_indices_backward max_pool3d_with_indices_backward adaptive_max_pool2d_backward max_pool2d_backward
    mkldnn_max_pool2d_backward mkldnn_max_pool3d_backward
    adaptive_max_pool3d_backward embedding_dense_backward unfold_backward col2im reflection_pad1d_backward
    reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward replication_pad2d_backward
    replication_pad3d_backward upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward
    _upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward
"""
# Copies, moves, fills, random numbers, queries.
NOTHING = """
    _assert_async _assert_tensor_metadata _chunk_cat _coalesced _copy_from _copy_from_and_resize _fused_sdp_choice
    _has_same_storage_numel _is_all_true _is_any_true _lazy_clone _linalg_check_errors _local_scalar_dense
    _mkldnn_reshape _mkldnn_transpose _nested_tensor_from_mask _nnz _pack_padded_sequence _pin_memory
    _resize_output _stack _to_copy _unsafe_index _unsafe_masked_index _unsafe_view _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d as_strided as_strided_scatter bernoulli binomial block_diag
    cat cauchy channel_shuffle clone complex constant_pad_nd copy dense_dim detach diag_embed diagonal_backward
    diagonal_scatter embedding empty_like exponential fill flip full_like gather geometric hstack im2col index
    index_copy index_fill index_select int_repr is_coalesced is_pinned is_same_size is_set_to lift lift_fresh
    linspace log_normal logspace lu_unpack masked_fill masked_scatter masked_scatter_backward masked_select
    max_unpool2d max_unpool3d mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight multinomial new_empty
    new_empty_strided new_full new_ones new_zeros nonzero nonzero_static normal normal_functional ones_like
    pixel_shuffle pixel_unshuffle poisson rand_like randint_like randn_like random record_stream reflection_pad1d
    reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d
    replication_pad3d resize resize_as resize_as_sparse roll rot90 select select_backward select_scatter set slice
    slice_backward slice_scatter sparse_dim sparse_resize sparse_resize_and_clear squeeze stack swapaxes t take
    to_mkldnn transpose tril triu uniform unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze
    upsample_nearest1d upsample_nearest2d upsample_nearest3d zero zeros_like
"""


_BY_COUNT: tuple[tuple[Count, str], ...] = (
    (nothing, NOTHING),
    (per_result(1), ONCE),
    (per_result(2), TWICE),
    (per_result(3), THRICE),
    (per_result(4), "polar"),
    (per_result(5), "fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask"),
    (per_argument(1), REDUCTIONS),
    (per_argument(2), "linalg_vector_norm norm linalg__powsum _amp_foreach_non_finite_check_and_unscale"),
    (per_argument(3), "dist renorm embedding_renorm logsumexp logcumsumexp _weight_norm_interface"),
    (per_argument(4), "var std var_mean std_mean _weight_norm_interface_backward"),
    (per_argument(1), "_amp_update_scale"),
    (per_result(1), "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_avg_pool3d_backward"),
    (per_result(1), "mkldnn_adaptive_avg_pool2d_backward"),
    (counts.pooled, POOLS),
    (counts.averaged_back, "avg_pool2d_backward avg_pool3d_backward"),
    (per_argument(1), ADDED_BACK),
    (per_result(SOFTMAX), "_softmax _log_softmax _safe_softmax _masked_softmax"),
    (per_result(SOFTMAX), "_softmax_backward_data _log_softmax_backward_data _masked_softmax_backward"),
    (counts.affine(NORM, 2), "native_layer_norm"),
    (counts.affine(NORM, 1), "native_group_norm"),
    (counts.affine(4, 2), "_fused_rms_norm"),
    (counts.affine(NORM, 5), "native_layer_norm_backward"),
    (counts.affine(NORM, 4), "native_group_norm_backward _fused_rms_norm_backward"),
    (counts.batch_norm(5), "native_batch_norm cudnn_batch_norm miopen_batch_norm _native_batch_norm_legit"),
    (counts.batch_norm(5), "_native_batch_norm_legit_functional"),
    (per_argument(2), "_native_batch_norm_legit_no_training _batch_norm_no_update"),
    (per_argument(NORM), "_batch_norm_with_update _batch_norm_with_update_functional native_batch_norm_backward"),
    (per_argument(NORM), "cudnn_batch_norm_backward miopen_batch_norm_backward batch_norm_backward"),
    (per_loss(2, 2), "mse_loss"),
    (per_loss(3, 2), "soft_margin_loss"),
    (per_loss(4, 2), "smooth_l1_loss huber_loss"),
    (per_loss(8, 3), "binary_cross_entropy"),
    (per_loss(6, 4), "binary_cross_entropy_with_logits"),
    (per_argument(1, 1), "nll_loss_forward nll_loss2d_forward"),
    (per_argument(1, 2), "nll_loss_backward nll_loss2d_backward"),
    (per_result(3), "mse_loss_backward smooth_l1_loss_backward huber_loss_backward"),
    (per_result(5), "binary_cross_entropy_backward soft_margin_loss_backward"),
    (counts.sorted_along, "sort argsort msort"),
    (counts.sorted_whole, "_unique _unique2 unique_consecutive unique_dim unique_dim_consecutive"),
    (counts.looked_up(0), "searchsorted"),
    (counts.looked_up(1), "bucketize isin"),
    (per_argument(1, 3), "scatter_add index_add scatter_reduce index_reduce"),
    (counts.reduced_at, "scatter"),
    (counts.added(2, 3), "index_put _index_put_impl _unsafe_index_put put"),
    (per_argument(1, 3), "_unsafe_masked_index_put_accumulate"),
    (counts.bags(6), "_embedding_bag _embedding_bag_forward_only"),
    (counts.bags(8), "_embedding_bag_dense_backward"),
    (counts.bags(10), "_embedding_bag_backward"),
    (counts.distances, "_cdist_forward _pdist_forward"),
    (counts.distances_back, "_cdist_backward _pdist_backward"),
    (counts.sampled, "grid_sampler_2d grid_sampler_3d"),
    (counts.sampled_back, "grid_sampler_2d_backward grid_sampler_3d_backward"),
    (counts.interpolated(2), "upsample_linear1d"),
    (counts.interpolated(4), "upsample_bilinear2d cudnn_grid_sampler"),
    (counts.interpolated(8), "upsample_trilinear3d"),
    (counts.interpolated(16), "upsample_bicubic2d"),
    (per_argument(4), "upsample_linear1d_backward"),
    (per_argument(8), "upsample_bilinear2d_backward"),
    (per_argument(16), "upsample_trilinear3d_backward"),
    (per_argument(32), "upsample_bicubic2d_backward"),
    (nothing, "_foreach_zero _foreach_copy _foreach_clone"),
    (per_argument(2), "_foreach_norm _foreach_powsum"),
    (per_argument(3), "_foreach_addcmul _foreach_addcdiv _foreach_lerp"),
    (fused.adam, "_fused_adam _fused_adamw"),
    (fused.sgd, "_fused_sgd"),
    (fused.adagrad, "_fused_adagrad"),
)
# What products do besides: biases, activations, the softmax of attention.
_BESIDE_PRODUCTS: tuple[tuple[Count, str], ...] = (
    (nothing, "mm bmm mv dot vdot _scaled_mm _int_mm _grouped_mm _scaled_grouped_mm _foreach_mm _trilinear"),
    (
        nothing,
        "_weight_int8pack_mm _weight_int4pack_mm _weight_int4pack_mm_for_cpu affine_grid_generator",
    ),
    (per_result(1), "addmm baddbmm addbmm addmv"),
    (per_result(2), "_addmm_activation"),
    (counts.bias(2), "mkldnn_linear convolution _convolution convolution_overrideable mkldnn_convolution conv_tbc"),
    (counts.bias(2), "miopen_convolution miopen_depthwise_convolution miopen_convolution_transpose _mps_convolution"),
    (counts.bias(2), "_nnpack_spatial_convolution"),
    (counts.bias(3), "_slow_conv2d_forward slow_conv3d_forward _conv_depthwise2d conv_depthwise3d"),
    (counts.bias(3), "slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d"),
    (nothing, "cudnn_convolution cudnn_convolution_transpose _mps_convolution_transpose"),
    (per_result(2), "cudnn_convolution_relu miopen_convolution_relu"),
    (per_result(4), "cudnn_convolution_add_relu miopen_convolution_add_relu"),
    (counts.bias_gradient(0), "convolution_backward convolution_backward_overrideable _slow_conv2d_backward"),
    (counts.bias_gradient(1), "mkldnn_linear_backward linear_backward mps_convolution_backward"),
    (counts.distances_by_product, "_euclidean_dist"),
    (fused.attention(-2), f"{FUSED_ATTENTION} _scaled_dot_product_attention_math_for_mps"),
    (fused.attention_backward(-2), " ".join(f"{name}_backward" for name in FUSED_ATTENTION.split())),
    (fused.attention(-3), "_flash_attention_forward _efficient_attention_forward"),
    (fused.attention_backward(-3), "_flash_attention_backward _efficient_attention_backward"),
    (fused.encoder_attention, "_native_multi_head_attention"),
    (fused.encoder_layer, "_transformer_encoder_layer_fwd"),
)
ELEMENTWISE: dict[str, Count] = {
    **{f"aten.{name}": count for count, names in (*_BY_COUNT, *_BESIDE_PRODUCTS) for name in names.split()},
    **{f"aten.{name}": count for name, count in GATES.items()},
    **dict.fromkeys(LINEAR_ALGEBRA, nothing),
}
