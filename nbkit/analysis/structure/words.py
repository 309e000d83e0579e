"""One word for the op types of all frameworks that do the same: MatMul, matmul_v2 and aten.mm.default are "matmul"."""

import re
from functools import cache

SAME = {
    "matmul": "matmul mm bmm addmm baddbmm linear matmul_v2 mul_v2 broadcast_matmul batch_matmul gemm einsum "
    "dot fused_matmul matmul_bias cublas_fused_mlp fused_gemm_epilogue addmv mv fc matmulnbits "
    "matmulinteger",
    "convolution": "conv conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d depthwise_conv2d "
    "causal_conv1d",
    "add": "add scalar_add elementwise_add broadcast_add add_n sum_n iadd fused_elemwise_add",
    "sub": "sub subtract elementwise_sub broadcast_sub rsub scalar_sub",
    "mul": "mul multiply elementwise_mul broadcast_mul scalar_mul imul",
    "div": "div divide elementwise_div broadcast_div true_divide scalar_div",
    "pow": "pow elementwise_pow scalar_pow broadcast_pow",
    "square": "square",
    "mean": "mean reduce_mean reducemean",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "reciprocal": "reciprocal",
    "exp": "exp",
    "neg": "neg negative",
    "softmax": "softmax _softmax softmax_ scaled_softmax fused_softmax_mask fused_softmax_mask_upper_triangle "
    "fused_tril_scale_softmax_mask_scale fused_scale_mask_softmax fused_scale_tril_softmax_mask_scale",
    "sdpa": "scaled_dot_product_attention attention multiheadattention groupqueryattention "
    "fused_multi_head_attention flash_attn flash_attention flash_attn_unpadded "
    "memory_efficient_attention multi_head_attention_forward fused_multi_head_attention_inference "
    "_flash_attention_forward flash_attn_qkvpacked efficient_attention_forward",
    "wkv": "wkv rwkv wkv4 wkv5 wkv6 wkv7 wkv_forward rwkv_linear_attention",
    "silu": "silu swish",
    "swiglu": "swiglu silu_and_mul",
    "gelu": "gelu fastgelu biasgelu quickgelu fast_gelu fused_bias_add_gelu quick_gelu",
    "relu": "relu relu6",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "erf": "erf",
    "norm": "layer_norm native_layer_norm layernorm rms_norm fused_rms_norm _fused_rms_norm "
    "layernormalization simplifiedlayernormalization rmsnormalization group_norm native_group_norm "
    "groupnormalization batch_norm batchnormalization native_batch_norm _native_batch_norm_legit "
    "cudnn_batch_norm instance_norm skip_layer_norm instancenormalization skiplayernormalization "
    "skipsimplifiedlayernormalization fused_layer_norm normalization",
    "embedding": "embedding lookup_table lookup_table_v2 c_embedding fused_embedding_eltwise_layernorm",
    "gather": "gather take index_select index",
    "cross_entropy": "nll cross_entropy cross_entropy_loss softmax_with_cross_entropy sparse_softmax_cross_entropy "
    "sparse_softmax_cross_entropy_ms softmaxcrossentropyloss c_softmax_with_cross_entropy nll_loss "
    "nll_loss_forward cross_entropy_with_softmax negativeloglikelihoodloss softmax_cross_entropy "
    "cross_entropy2",
    "loss": "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits "
    "kl_div cosine_embedding_loss ctc_loss hinge_embedding_loss margin_ranking_loss "
    "sigmoid_cross_entropy_with_logits",
    "cat": "cat concat concatv2 stack",
    "part": "slice split chunk getitem select narrow split_with_sizes unbind index_select slice_update strided_slice",
    "cast": "to cast _to_copy amp_white_identity type_as cast_f2h cast_h2f float half bfloat16 convert_element_type",
    "view": "view reshape _unsafe_view transpose permute t expand unsqueeze squeeze flatten contiguous "
    "unflatten movedim swapaxes transpose2 reshape2 unsqueeze2 squeeze2 flatten_contiguous_range "
    "expand_v2 broadcast_like view_as expand_as",
    "same": "clone detach alias dropout identity assign scale dropout_v2 native_dropout pinned_identity "
    "hierarchical_parallel_cast parallel_cast _assert_tensor_metadata lift_fresh_copy where isnan "
    "share_data share_buffer",
    "cos": "cos",
    "sin": "sin",
}
WORDS = {op: word for word, ops in SAME.items() for op in ops.split()}
# What changes the form or the place of a tensor, not its values.
TRANSPARENT = {"cast", "view", "same"}


@cache
def word_of(op: str) -> str:
    """The word for an op type; of an unknown one its own name without namespace and overload, in small letters."""
    name = base_name(op)
    plain = re.sub(r"_?v?\d$", "", name.strip("_"))
    return WORDS.get(name) or WORDS.get(plain) or ("sdpa" if "dot_product_attention" in name else name)


@cache
def base_name(op: str) -> str:
    """Name of an op type alone: layer_norm of aten.layer_norm.default, matmul of pd_op.matmul."""
    name = op.removeprefix("<built-in function ").rstrip(">")
    pieces = name.split(".")
    if len(pieces) > 1:
        # aten.mm.default, prims.convert_element_type.default; torch.nn.functional.linear, pd_op.matmul, onnx::Gemm
        name = pieces[1] if pieces[0] in ("aten", "prims", "pd_op", "prim") else pieces[-1]
    return re.sub(r"^.*::", "", name).lower().removesuffix("_")
