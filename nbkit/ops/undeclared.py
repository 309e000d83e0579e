"""Says of aten ops what neither their schemas nor torch's tags do; names as in families."""

from collections.abc import Mapping

from nbkit.ops.families import ATTENTION_KERNELS, family, gradients_of

# Positions of arguments that an op writes to although its schema does not say so: running statistics, collectives.
WRITES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"), (3, 4)),
    "batch_norm_update_stats": (1, 2),
    **dict.fromkeys(("allreduce_", "allgather_", "broadcast_", "reduce_scatter_", "recv_"), (0,)),
}
# They copy the whole memory of their first input, and their result lies in the copy as the input does in the memory.
WHOLE_COPIES = frozenset("as_strided_scatter select_scatter slice_scatter diagonal_scatter".split())
# So many results of an op are values; the others are memory for its backward op, which only that can read.
VALUES: Mapping[str, int] = {
    "mkldnn_rnn_layer": 3, "_cudnn_rnn": 3, "miopen_rnn": 3, "_thnn_fused_lstm_cell": 2, "_thnn_fused_gru_cell": 1,
    "_cudnn_init_dropout_state": 0, "_embedding_bag": 1, "_ctc_loss": 1, "_sparse_mm_reduce_impl": 1,
}  # fmt: skip
# They write to what their forward op noted, of which torch makes a copy where the graph is retained.
CONSUMING = gradients_of("_cudnn_rnn miopen_rnn")
# They read memory that only the kernel which filled it can read, and end the process where another one does.
PRIVATE = CONSUMING | gradients_of("_thnn_fused_lstm_cell _thnn_fused_gru_cell mkldnn_rnn_layer")
PRIVATE |= {"_thnn_fused_lstm_cell_backward_impl"}
# Floating-point results that autograd leaves out, all but the first of these ops; torch tells nowhere else than in
# tools/autograd/derivatives.yaml (output_differentiability, or a formula with one gradient).
ONLY_FIRST_DIFFERENTIABLE = ATTENTION_KERNELS | frozenset(
    "native_layer_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training "
    "_batch_norm_with_update _batch_norm_with_update_functional _batch_norm_no_update cudnn_batch_norm "
    "miopen_batch_norm _weight_norm_interface _flash_attention_forward _efficient_attention_forward "
    "_cudnn_attention_forward nll_loss_forward nll_loss2d_forward "
    "multilabel_margin_loss_forward log_sigmoid_forward _ctc_loss _cudnn_ctc_loss miopen_ctc_loss _embedding_bag "
    "_linalg_det _linalg_solve_ex rrelu_with_noise_functional _thnn_fused_gru_cell".split()
)
# What they return is defined by strides, or they ask for certain ones; kernels of whole layers take them for granted,
# as torch's own functions give them.
STRIDED = frozenset(
    "as_strided_copy as_strided_scatter as_strided_ set_ mkldnn_rnn_layer _cudnn_rnn miopen_rnn _weight_norm_interface "
    "native_group_norm native_layer_norm_backward native_batch_norm_backward".split()
)
STRIDED |= gradients_of("mkldnn_rnn_layer _cudnn_rnn miopen_rnn _weight_norm_interface native_group_norm")
# What torch documents as nondeterministic (torch 2.13), everywhere and on CUDA: in use_deterministic_algorithms(), and
# in the notes on nn.LSTM and scaled_dot_product_attention() with cudnn.
NONDETERMINISTIC = family("index_put put index_copy max_unpool2d max_unpool3d _unsafe_index_put _index_put_impl")
NONDETERMINISTIC_ON_CUDA = gradients_of(
    "convolution replication_pad1d replication_pad2d replication_pad3d reflection_pad1d reflection_pad2d "
    "reflection_pad3d max_pool3d_with_indices avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d "
    "adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d upsample_linear1d upsample_bilinear2d "
    "upsample_bicubic2d upsample_trilinear3d nll_loss2d _ctc_loss _embedding_bag _embedding_bag_dense grid_sampler_2d "
    "grid_sampler_3d _cudnn_rnn _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_cudnn_attention"
) | family(
    "convolution cudnn_convolution _convolution cudnn_convolution_transpose scatter_add index_add scatter "
    "scatter_reduce nll_loss2d_forward histc bincount median cumsum _cudnn_rnn"
)
