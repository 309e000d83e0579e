"""Lists the ops that torch documents as nondeterministic (torch 2.13).

In use_deterministic_algorithms(), and in the notes on nn.LSTM and scaled_dot_product_attention() with cudnn.
"""

from torch import Tag, Tensor

from nbkit.capture.replay.op_traits import OpTraits

EVERYWHERE = frozenset("index_put put index_copy max_unpool2d max_unpool3d _unsafe_index_put _index_put_impl".split())
ON_CUDA = frozenset(
    "convolution convolution_backward cudnn_convolution _convolution cudnn_convolution_transpose "
    "replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward reflection_pad1d_backward "
    "reflection_pad2d_backward reflection_pad3d_backward scatter_add index_add scatter scatter_reduce "
    "max_pool3d_with_indices_backward avg_pool3d_backward _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward "
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward fractional_max_pool2d_backward "
    "fractional_max_pool3d_backward upsample_linear1d_backward upsample_bilinear2d_backward "
    "upsample_bicubic2d_backward upsample_trilinear3d_backward nll_loss2d_forward nll_loss2d_backward "
    "_ctc_loss_backward _embedding_bag_backward _embedding_bag_dense_backward histc bincount "
    "median grid_sampler_2d_backward grid_sampler_3d_backward cumsum _cudnn_rnn _cudnn_rnn_backward "
    "_scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward "
    "_scaled_dot_product_cudnn_attention_backward".split()
)
TAG = getattr(Tag, "nondeterministic_bitwise", None)


def documented(traits: OpTraits, tensors: list[Tensor]) -> str | None:
    """Returns what torch documents of an op that may give other bits each time; None if nothing."""
    name = traits.packet.removesuffix("_")
    if name in EVERYWHERE:
        return "torch documents it as nondeterministic"
    if (name in ON_CUDA or (TAG is not None and TAG in traits.func.tags)) and any(not one.is_cpu for one in tensors):
        return "torch documents it as nondeterministic on CUDA"
    return None
