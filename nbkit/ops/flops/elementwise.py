"""Holds the arithmetic of ops outside matrix products, in FLOPs for each element."""

from nbkit.ops.families import family, gradients_of
from nbkit.ops.flops import counts, fused
from nbkit.ops.flops.counts import NORM, SOFTMAX, Count, nothing, per_argument, per_loss, per_result
from nbkit.ops.flops.recurrent import GATES

# In families, but of another namespace, or of torch before 2.13.
ELSEWHERE = frozenset({"wait_tensor", "rename_"})
# What ops that torch does not tag as pointwise do once for each element of their result: comparisons, activations,
# their derivatives, the biases of products. Ops that it tags count the same without being named here.
ONCE = """
    abs copysign eq floor_divide gcd ge gelu gt heaviside lcm le lt ne rsub threshold xlogy __irshift__ hardswish mish
    _add_relu _prelu_kernel rrelu_with_noise log_sigmoid_forward elu_backward gelu_backward hardshrink_backward
    hardsigmoid_backward hardswish_backward hardtanh_backward leaky_relu_backward log_sigmoid_backward mish_backward
    rrelu_with_noise_backward softplus_backward softshrink_backward threshold_backward _adaptive_avg_pool2d_backward
    _adaptive_avg_pool3d_backward adaptive_avg_pool3d_backward mkldnn_adaptive_avg_pool2d_backward
    addmm baddbmm addbmm addmv
"""
TWICE = """
    glu glu_backward _prelu_kernel_backward native_dropout native_dropout_backward _fused_dropout _masked_scale addr
    dequantize _addmm_activation cudnn_convolution_relu miopen_convolution_relu
"""
THRICE = "addcmul addcdiv lerp cross linalg_cross quantize_per_tensor quantize_per_channel"
# Once for each element that they read; what they compare counts as well.
REDUCTIONS = """
    sum nansum mean amax amin aminmax _aminmax max min argmax argmin prod all any count_nonzero trace cumsum cumprod
    cummax cummin _cummax_helper _cummin_helper topk kthvalue median nanmedian mode histc bincount equal
    _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d mkldnn_adaptive_avg_pool2d
    segment_reduce _amp_update_scale col2im
"""
POOLS = """
    avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices
    mkldnn_max_pool2d mkldnn_max_pool3d
"""
# Backward ops that add each element of the gradient to one place of their result.
ADDED_BACK = " ".join(
    gradients_of(
        "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d max_pool2d mkldnn_max_pool2d "
        "mkldnn_max_pool3d adaptive_max_pool3d embedding_dense unfold reflection_pad1d reflection_pad2d "
        "reflection_pad3d replication_pad1d replication_pad2d replication_pad3d upsample_nearest1d upsample_nearest2d "
        "upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d"
    )
)
# Copies, moves, fills, random numbers, queries.
NOTHING = """
    DRAWS UNFILLED CONSTANTS RANGES FORMS PARTS JOINS GATHERS TRIANGLES MOVES QUIET_VIEWS RESIZING REORDERS
    _assert_async _assert_tensor_metadata _chunk_cat _copy_from_and_resize _fused_sdp_choice _has_same_storage_numel
    _is_all_true _is_any_true _lazy_clone _linalg_check_errors _local_scalar_dense _mkldnn_reshape _mkldnn_transpose
    _nested_tensor_from_mask _nnz _pack_padded_sequence _pin_memory _stack _unsafe_masked_index
    _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d as_strided_scatter block_diag complex
    dense_dim diag_embed diagonal_backward diagonal_scatter fill im2col int_repr is_coalesced is_pinned is_same_size
    is_set_to lu_unpack masked_fill masked_scatter masked_scatter_backward max_unpool2d max_unpool3d
    mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight nonzero nonzero_static record_stream reflection_pad1d
    reflection_pad2d reflection_pad3d repeat_interleave replication_pad1d replication_pad2d replication_pad3d rot90
    select_backward slice_backward sparse_dim to_mkldnn upsample_nearest1d upsample_nearest2d upsample_nearest3d zero
"""


_TABLE: tuple[tuple[Count, str], ...] = (
    (nothing, NOTHING),
    (per_result(1), ONCE),
    (per_result(2), TWICE),
    (per_result(3), THRICE),
    (per_result(4), "polar cudnn_convolution_add_relu miopen_convolution_add_relu"),
    (per_result(5), "fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask"),
    (per_argument(1), REDUCTIONS),
    (per_argument(2), "linalg_vector_norm norm linalg__powsum _amp_foreach_non_finite_check_and_unscale"),
    (per_argument(3), "dist renorm embedding_renorm logsumexp logcumsumexp _weight_norm_interface"),
    (per_argument(4), "var std var_mean std_mean _weight_norm_interface_backward"),
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
    # What products do besides: biases, activations, the softmax of attention.
    (counts.bias(2), "mkldnn_linear convolution _convolution convolution_overrideable mkldnn_convolution conv_tbc"),
    (counts.bias(2), "miopen_convolution miopen_depthwise_convolution miopen_convolution_transpose _mps_convolution"),
    (counts.bias(2), "_nnpack_spatial_convolution"),
    (counts.bias(3), "_slow_conv2d_forward slow_conv3d_forward _conv_depthwise2d conv_depthwise3d"),
    (counts.bias(3), "slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d"),
    (counts.bias_gradient(0), "convolution_backward convolution_backward_overrideable _slow_conv2d_backward"),
    (counts.bias_gradient(1), "mkldnn_linear_backward linear_backward mps_convolution_backward"),
    (counts.distances_by_product, "_euclidean_dist"),
    (fused.attention(-2), "ATTENTION_KERNELS _scaled_dot_product_attention_math_for_mps"),
    (fused.attention_backward(-2), " ".join(gradients_of("ATTENTION_KERNELS"))),
    (fused.attention(-3), "_flash_attention_forward _efficient_attention_forward"),
    (fused.attention_backward(-3), "_flash_attention_backward _efficient_attention_backward"),
    (fused.encoder_attention, "_native_multi_head_attention"),
    (fused.encoder_layer, "_transformer_encoder_layer_fwd"),
)
ELEMENTWISE: dict[str, Count] = {
    **{f"aten.{name.removesuffix('_')}": count for count, names in _TABLE for name in family(names) - ELSEWHERE},
    **{f"aten.{name}": count for name, count in GATES.items()},
}
