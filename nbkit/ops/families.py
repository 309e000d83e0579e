"""Says what kinds of work aten ops do: a family holds names without overload, in-place forms included ("add", "add_").

What torch's tags and schemas say is copied here, as analysis and readers work without torch; tests/ops holds both
together. The rest is read in torch's native_functions.yaml.
"""

from collections.abc import Mapping


def family(names: str) -> frozenset[str]:
    """Returns the ops named, each with its in-place form, and those of the families that are named: "ADDS sum mean"."""
    ops = {name for name in names.split() if not name.isupper()}
    others = [globals()[name] for name in names.split() if name.isupper()]
    return frozenset().union(ops, (f"{op}_" for op in ops if not op.endswith("_")), *others)


def gradients_of(names: str) -> frozenset[str]:
    """Returns the ops that compute the gradients of those named: "mish_backward" for "mish"."""
    return frozenset(f"{op}_backward" for op in family(names) if not op.endswith("_"))


# Products of matrices and vectors: where their two factors stand among the arguments. What is added stands first.
FACTORS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys("mm bmm mv dot vdot matmul linear _int_mm _scaled_mm".split(), (0, 1)),
    **dict.fromkeys(family("addmm baddbmm addmv addbmm _addmm_activation"), (1, 2)),
}
PRODUCTS = frozenset(FACTORS)
# Of batches of matrices: those of attention, where those of a linear layer have one matrix.
BATCHED_PRODUCTS = family("bmm baddbmm")
# Of two matrices, or two batches of them: their last two tensors.
MATRIX_PRODUCTS = family("BATCHED_PRODUCTS mm addmm")
# Of a layer: with a matrix of weights.
LAYER_PRODUCTS = PRODUCTS - family("BATCHED_PRODUCTS addbmm")
CONVOLUTIONS = frozenset(
    "conv1d conv2d conv3d convolution _convolution convolution_overrideable mkldnn_convolution cudnn_convolution "
    "cudnn_convolution_relu cudnn_convolution_add_relu cudnn_convolution_transpose miopen_convolution "
    "miopen_convolution_relu miopen_convolution_add_relu miopen_convolution_transpose miopen_depthwise_convolution "
    "_mps_convolution _mps_convolution_transpose _nnpack_spatial_convolution _slow_conv2d_forward slow_conv3d_forward "
    "_conv_depthwise2d conv_depthwise3d slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d "
    "slow_conv_transpose3d".split()
)
# torch's functions that add a bias, which may be None, to a product; and those that add a matrix to one, with its op.
BIASED_LAYERS = frozenset("linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split())
BIASED_PRODUCTS: Mapping[str, str] = {"addmm": "mm", "addbmm": "bmm"}
# What adds up products of two of its inputs, and where these stand.
MULTIPLIED: Mapping[str, tuple[int, int]] = {**FACTORS, **dict.fromkeys(CONVOLUTIONS, (0, 1))}
# The kernels behind F.scaled_dot_product_attention begin with this.
FUSED_ATTENTION = "_scaled_dot_product"
# Those that give the sum of each row beside the result, for their backward op.
ATTENTION_KERNELS = frozenset(
    "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_fused_attention_overrideable".split()
)
# The safe one is that of scaled_dot_product_attention where it is computed op by op.
SOFTMAX = frozenset("softmax _softmax _safe_softmax".split())
LOG_SOFTMAX = frozenset("log_softmax _log_softmax".split())
BATCH_NORMS = frozenset(
    "batch_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional "
    "_native_batch_norm_legit_no_training _batch_norm_with_update _batch_norm_with_update_functional "
    "_batch_norm_no_update cudnn_batch_norm miopen_batch_norm".split()
)
ROW_NORMS = frozenset(
    "layer_norm native_layer_norm group_norm native_group_norm instance_norm rms_norm _fused_rms_norm".split()
)
NORMS = BATCH_NORMS | ROW_NORMS
VECTOR_NORMS = frozenset("norm linalg_vector_norm _foreach_norm".split())
MEANS = frozenset("mean var std var_mean std_mean".split())

# Numbers of a normal distribution that has no other deviation than 1 by itself.
NORMAL_DRAWS = frozenset("randn randn_like normal_".split())
# Random numbers, whatever else they read ...
DRAWS = family(
    "rand rand_like randn randn_like randint randint_like randperm random normal normal_functional log_normal uniform "
    "exponential cauchy geometric bernoulli binomial poisson multinomial _standard_gamma _sample_dirichlet "
    "_fill_mem_eff_dropout_mask_ _cudnn_init_dropout_state"
)
# ... and if their arguments say that they train, or drop something.
DROPOUTS = family(
    "dropout native_dropout _fused_dropout alpha_dropout feature_dropout feature_alpha_dropout rrelu rrelu_with_noise "
    "rrelu_with_noise_functional"
)

# Memory as it is: nobody knows what is in it.
UNFILLED = frozenset(
    "empty empty_like empty_strided empty_permuted empty_quantized new_empty new_empty_strided resize "
    "_resize_output _resize_output_ _empty_affine_quantized _empty_per_channel_affine_quantized".split()
)
# They read values and return a number or a bool in place of a tensor: x.item(), int(x), if x:, torch.equal.
NUMBERS = frozenset(("_local_scalar_dense", "equal"))
# Numbers that are written down, whatever tensor says their shape.
CONSTANTS = frozenset(
    "ones ones_like new_ones zeros zeros_like new_zeros full full_like new_full scalar_tensor "
    "_efficientzerotensor".split()
)
RANGES = frozenset("arange range linspace logspace eye".split())
# Another value in the place of some elements, by a mask.
MASKED_FILLS = family("masked_fill where masked_scatter")
# Where the mask stands among their tensors.
MASK_AT: Mapping[str, int] = {"where": 0, "where_": 0} | dict.fromkeys(MASKED_FILLS - family("where"), 1)
# They write to places that indices say, or add there.
INDEX_PUTS = family("index_copy index_fill scatter index_put _index_put_impl put _unsafe_index_put")
INDEX_ADDS = family("index_add index_reduce scatter_add scatter_reduce")
INDEX_WRITES = INDEX_PUTS | INDEX_ADDS
# What they give holds numbers that they are given, at places that say nothing of these numbers.
FILLS = family("CONSTANTS MASKED_FILLS fill index_fill constant_pad_nd")
# They write over what they are given without reading it.
OVERWRITING = frozenset(
    "copy_ fill_ zero_ eye_ _foreach_copy_ _foreach_zero_ normal_ uniform_ random_ bernoulli_ exponential_ geometric_ "
    "cauchy_ log_normal_".split()
)

# Casts, by the argument that is cast.
CASTS: Mapping[str, int] = {"copy": 1, "copy_": 1} | dict.fromkeys(
    "_to_copy to type_as _copy_from _autocast_to_full_precision _autocast_to_reduced_precision".split(), 0
)
# They give what they read first: the same elements, in the same order and shape.
IDENTITIES = frozenset(CASTS) - {"copy", "copy_"} | frozenset(
    "clone contiguous detach detach_ detach_copy alias alias_copy lift lift_fresh lift_fresh_copy positive "
    "_fw_primal resolve_conj resolve_neg pin_memory wait_tensor".split()
)
COPIES = family("IDENTITIES CASTS")
# In the same order.
RESHAPES = family(
    "view _unsafe_view view_as reshape reshape_as _reshape_alias _reshape_copy flatten unflatten ravel squeeze "
    "unsqueeze view_as_complex view_as_real"
)
PERMUTES = family("t transpose permute movedim moveaxis swapaxes swapdims numpy_T mT")
EXPANDS = frozenset("expand expand_as broadcast_to".split())
# All of them give the elements that they got, in another form.
FORMS = family("IDENTITIES RESHAPES PERMUTES EXPANDS")
# They give a part of the elements, by places that their arguments say, ...
PARTS = family(
    "select slice narrow split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit unsafe_split "
    "unsafe_chunk unsafe_split_with_sizes diagonal linalg_diagonal unfold as_strided real imag"
)
# ... or by indices that they read.
GATHERS = frozenset("embedding index _unsafe_index index_select gather take take_along_dim masked_select".split())
JOINS = frozenset("cat concat concatenate stack hstack vstack dstack column_stack".split())
# They hand elements on, to other places, in another dtype or shape.
MOVES = family("COPIES JOINS GATHERS repeat flip roll constant_pad_nd select_copy slice_copy") - {"embedding"}
# They keep the elements of a triangle, and put 0 in the place of the others.
TRIANGLES = family("triu tril")
# Views although their schema does not say so, or hand on what they are given.
QUIET_VIEWS = frozenset(
    "_unsafe_view _reshape_alias lift _fw_primal unsafe_split unsafe_chunk unsafe_split_with_sizes wait_tensor".split()
)
# They hand values on without their graph.
DETACHES = family("detach alias _local_scalar_dense")
# They change a tensor's metadata in place, so that what is known of it must be read again.
RESIZING = frozenset(
    "resize_ resize_as_ set_ t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_ resize_as_sparse_ "
    "sparse_resize_ sparse_resize_and_clear_ _coalesced_ set_data rename_".split()
)

ADDS = family("add")
SUBTRACTS = family("sub rsub")
MULTIPLIES = family("mul")
DIVIDES = family("div")
ARITHMETIC = ADDS | SUBTRACTS | MULTIPLIES | DIVIDES
POWERS = family("pow square")
# Of integers they may give one that the dtype does not hold.
WRAPPING = family("ARITHMETIC POWERS neg abs addcmul")
ROOTS = family("sqrt rsqrt")
CLAMPS = family("clamp clamp_min clamp_max")
EXTREMES = frozenset("minimum maximum fmin fmax".split())
# Element by element or row by row, though torch has no tag that says so.
UNTAGGED_ELEMENTWISE = family(
    "SOFTMAX LOG_SOFTMAX _to_copy copy_ complex polar masked_fill mse_loss smooth_l1_loss huber_loss "
    "binary_cross_entropy binary_cross_entropy_with_logits _prelu_kernel native_dropout _softmax_backward_data "
    "_log_softmax_backward_data"
)
COMPARISONS = family("eq ne lt le gt ge")
LOGICAL = family("logical_not logical_and logical_or logical_xor")
COMPLEMENTS = family("bitwise_not")
LOGIC = family("LOGICAL COMPLEMENTS bitwise_and bitwise_or bitwise_xor")
RELUS = family("relu hardtanh")
ACTIVATIONS = family("RELUS sigmoid tanh silu gelu elu leaky_relu hardsigmoid hardswish mish")
# Formulas of losses are written with them, element by element.
FORMULAS = family("ARITHMETIC POWERS ROOTS CLAMPS where abs neg exp log")
# Losses of each element beside its target, and of classes.
ELEMENT_LOSSES = frozenset(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits".split()
)
CLASS_LOSSES = frozenset("nll_loss_forward nll_loss2d_forward".split())
LOSSES = ELEMENT_LOSSES | CLASS_LOSSES
# They sort, or pick elements along a dimension, and say where they found these.
SORTS = frozenset("sort topk argsort".split())
PICKS = SORTS | frozenset("max min median nanmedian mode kthvalue cummax cummin argmax argmin".split())
# They work along dimensions that they are given, and on what lies beside each other there alone.
ALONG_DIMS = family(
    "PICKS MEANS SOFTMAX LOG_SOFTMAX VECTOR_NORMS sum nansum linalg__powsum prod amax amin aminmax any all "
    "count_nonzero logsumexp cumsum cumprod glu"
)
# Each image of a batch (N, C, H, W) by itself.
IMAGES = frozenset("max_pool2d_with_indices avg_pool2d _adaptive_avg_pool2d upsample_nearest2d".split())
# They give values between those of neighbors, also where they leave elements out.
INTERPOLATIONS = frozenset(
    "upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d _upsample_bilinear2d_aa "
    "_upsample_bicubic2d_aa".split()
)
# They weigh by exp(x - max(x)), or take the largest: what a mask of -Inf is for.
MASK_READERS = family("SOFTMAX LOG_SOFTMAX logsumexp amax max maximum")
# They may put another value in the place of an Inf. Most ops that make a finite number of it, such as exp, compute
# with it.
CHOICES = family("MASKED_FILLS INDEX_PUTS CLAMPS EXTREMES nan_to_num threshold_backward")
# They say by their arguments or inputs which element comes where.
REORDERS = family(
    "PERMUTES EXPANDS GATHERS JOINS INDEX_WRITES flip roll repeat sort unfold as_strided slice_scatter select_scatter "
    "pixel_shuffle pixel_unshuffle channel_shuffle"
)
# They give the elements of their input as they are, some or all of them, in other places or dtypes.
SAME_ELEMENTS = family("FORMS PARTS JOINS GATHERS CASTS repeat flip roll")
# What a running average is made with.
UPDATES_IN_PLACE = frozenset(name for name in family("add sub mul div lerp copy") if name.endswith("_"))
# What makes classes of scores.
CLASS_CHOICES = frozenset("argmax max topk gt ge round".split())
