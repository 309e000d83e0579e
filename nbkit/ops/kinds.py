"""Tells what ops of different frameworks do, in the same words: aten, OneFlow, Paddle (old and PIR) and ONNX."""

import re
from functools import cache

from nbkit.ops import families

# Per kind the names that ops have anywhere, in lower case and without "_", version numbers and overloads.
NAMES = {
    "matmul": "mm bmm addmm baddbmm linear matmul gemm batchmatmul broadcastmatmul "
    "broadcastmatmulgradb fusedmatmulbias fc",
    "add": "add addn elementwiseadd broadcastadd scalaradd",
    "subtract": "sub rsub subtract elementwisesub broadcastsub scalarsub",
    "multiply": "mul multiply elementwisemul broadcastmul scalarmul",
    "divide": "div divide truediv elementwisediv broadcastdiv scalardiv reciprocal",
    "scale": "scale",
    "negate": "neg negative",
    "power": "pow elementwisepow broadcastpow scalarpow",
    "square": "square",
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "relu": "relu",
    "gelu": "gelu fastgelu",
    "silu": "silu swish",
    "softplus": "softplus",
    "maximum": "maximum elementwisemax broadcastmaximum max",
    "minimum": "minimum elementwisemin broadcastminimum min",
    "mean": "mean reducemean",
    "reduce_max": "amax reducemax",
    "reduce_min": "amin reducemin",
    "reduce_sum": "sum reducesum reducesumlike",
    "softmax": "softmax safesoftmax",
    "log_softmax": "logsoftmax",
    "layer_norm": "layernorm nativelayernorm layernormalization",
    "rms_norm": "rmsnorm fusedrmsnorm rmsnormalization",
    "batch_norm": "batchnorm nativebatchnorm batchnormalization normalization",
    "group_norm": "groupnorm nativegroupnorm groupnormalization instancenorm instancenormalization",
    "attention": "scaleddotproductattention scaleddotproductflashattention scaleddotproductefficientattention "
    "scaleddotproductflashattentionforcpu flashattn fusedmultiheadattentioninference attention "
    "multiheadattention groupqueryattention memoryefficientattention "
    "flashattnunpadded",
    "wkv": "wkv rwkv wkv4 wkv5 wkv6 wkv7",
    "embedding": "embedding lookuptable gather",
    "one_hot": "onehot",
    "loss": "crossentropyloss crossentropywithsoftmax softmaxwithcrossentropy nll nllloss nlllossforward "
    "softmaxcrossentropyloss sparsesoftmaxcrossentropy crossentropy",
    "convolution": "conv1d conv2d conv3d convolution conv",
    "pad": "pad pad3d constantpadnd",
    "slice": "slice select narrow stridedslice",
    "split": "split splitwithsizes chunk unbind",
    "concat": "cat concat stack",
    "where": "where maskedfill",
    "and": "and logicaland bitwiseand",
    "or": "or logicalor bitwiseor",
    "xor": "xor logicalxor bitwisexor",
    "not": "not logicalnot bitwisenot",
    "equal": "equal eq",
    "not_equal": "notequal ne",
    "less": "less lt lessthan",
    "less_equal": "lessequal lessorequal le",
    "greater": "greater gt greaterthan",
    "greater_equal": "greaterequal greaterorequal ge",
    "triangle": "tril triu triltriu trilu",
    "dropout": "dropout nativedropout",
    "constant": "fillconstant constant scalartensor full zeros ones oneslike zeroslike fulllike fillanylike "
    "constantofshape",
    "range": "arange range",
    "cast": "cast castlike tocopy copyfrom convertelementtype to type typeas autocasttofullprecision "
    "autocasttoreducedprecision",
    "reshape": "reshape reshape2 reshapelike view unsafeview flatten flatten2 flattencontiguousrange unflatten squeeze "
    "squeeze2 unsqueeze unsqueeze2 expanddims",
    "permute": "t transpose transpose2 permute numpyt",
    "expand": "expand broadcastto broadcastlike tile repeat",
    "identity": "identity detach alias clone copy contiguous assign share liftfresh liftfreshcopy memcpyd2h "
    "memcpyh2d asserttensormetadata",
    "boxing": "hierarchicalparallelcast hierarchicalparallelcastlike boxingidentity",
    "all_reduce": "allreduce callreducesum callreducemax mpallreducesum",
    "reduce_to_one": "creducesum",
    "broadcast_from_one": "cbroadcast",
    "all_gather": "allgather callgather allgatherintotensor",
    "reduce_scatter": "reducescatter creducescatter reducescattertensor",
    "all_to_all": "alltoall alltoallsingle globalscatter globalgather",
    "send": "send sendv2 psend",
    "receive": "recv recvv2 precv",
    "optimizer_step": "adam adamw adamax adagrad adadelta nadam radam sgd momentum rmsprop lamb lars ftrl larsmomentum "
    "fusedadam fusedadamw fusedsgd fusedadagrad adamupdate sgdupdate momentumupdate lambupdate optimizer",
}
# Products with a matrix of weights or another one, and what normalizes.
PRODUCTS = frozenset({"matmul", "convolution"})
NORMS = frozenset({"layer_norm", "rms_norm", "batch_norm", "group_norm"})
# Their result holds the same numbers as what they read: between two ops that compute, they may stand or not.
PASSING = frozenset({"cast", "reshape", "permute", "expand", "identity", "boxing"})
# Of two ops that stand in the same place, one may be spelled by another of these: 1 - x as x * -1 + 1.
ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "scale", "negate", "square", "power"})
ROOTS = frozenset({"sqrt", "rsqrt", "power"})
SQUARES = frozenset({"square", "power", "multiply"})
SCALES = frozenset({"multiply", "divide", "scale"})
# What activation functions are written out with.
CURVES = frozenset("tanh erf sigmoid silu gelu relu swiglu".split())
LOOKUPS = frozenset({"embedding", "index", "indexselect"})
PARTS = frozenset({"slice", "split", "getitem", "indexselect"})
# What hands values on: their form or scale changes, or a mask or a dropout takes some.
TRANSPARENT = PASSING | {"scale", "dropout", "where", "isnan"}
# What may stand between the scores of attention and their softmax: scaling, masks, biases.
SCORING = SCALES - {"scale"} | frozenset("add subtract maximum triangle clip clamp tanh".split())
# Where masks end, as what they give there is zero; and what is done to a mask, and to scores with it, on the way there.
MASK_ENDS = frozenset({"softmax", "log_softmax", "attention", "exp"})
MASK_STEPS = PASSING | ARITHMETIC | frozenset(
    "where slice split concat pad embedding triangle constant maximum minimum reduce_max clamp clip".split()
)  # fmt: skip
LOSSES = frozenset("loss mseloss l1loss smoothl1loss huberloss binarycrossentropy ctcloss kldiv".split())
COMMUNICATION = frozenset(
    "all_reduce reduce_to_one broadcast_from_one all_gather reduce_scatter all_to_all send receive".split()
)
# Ops that read nothing and make a constant; another that reads nothing may receive an activation.
MAKERS = frozenset({"constant", "range", "eye", "empty"})
GRADIENT = " gradient"
_KINDS = {name: kind for kind, names in NAMES.items() for name in names.split()}
# Names that mean one thing as they stand here, in Paddle and in ONNX, and another elsewhere (aten.mul, aten.sum).
_AS_WRITTEN = {"mul": "matmul", "sum": "add", "Sum": "add"}
_PREFIX = re.compile(
    r"^(?:aten|prims|torch|pd_op|cinn_op|builtin|_?operator|quantized|nn|functional|Tensor|_c10d_functional|c10d)\."
)
_GRADIENTS = re.compile(r"(?:doublegrad|paramgrad|grad|backward)$")


@cache
def op_kind(op: str | None) -> str:
    """Returns an op's kind as a word of `NAMES`, with GRADIENT behind it for its gradient; else its own name, folded.

    Null has the kind "".
    """
    if op is None:
        return ""
    if op in _AS_WRITTEN:
        return _AS_WRITTEN[op]
    name = _folded(op)
    if name in _KINDS:
        return _KINDS[name]
    forward = _GRADIENTS.sub("", name)
    return _kind(name) if forward == name else f"{_kind(forward)}{GRADIENT}"


def _folded(op: str) -> str:
    """Returns `op` without namespaces, overload and in-place mark, in lower case and without "_"."""
    is_qualified = False
    while (short := _PREFIX.sub("", op)) != op:
        op, is_qualified = short, True
    return (op.split(".")[0] if is_qualified else op).replace("_", "").lower()


def _kind(name: str) -> str:
    """Returns the kind of a folded name, or of that name without its version number."""
    return _KINDS.get(name) or _KINDS.get(re.sub(r"v\d+$", "", name)) or name


# Each number that they give is one that they read, as large as one, or written down beside them: they round nothing.
EXACT = PASSING - {"cast"} | frozenset(
    "range one_hot negate abs sign clip relu6 reduce_max reduce_min aminmax gathernd gatherelements scatternd "
    "scatterelements slicescatter selectscatter indexcopy indexfill reversesequence rot90 repeatinterleave diagembed "
    "im2col stack maxpool maxpool2dwithindices maxpool3dwithindices globalmaxpool adaptivemaxpool2d pixelshuffle "
    "pixelunshuffle channelshuffle depthtospace spacetodepth upsamplenearest1d upsamplenearest2d "
    "upsamplenearest3d".split()
)
EXACT |= frozenset(
    map(
        op_kind,
        families.family("FORMS PARTS GATHERS JOINS MOVES TRIANGLES CONSTANTS MASKED_FILLS PICKS EXTREMES CLAMPS RELUS"),
    )
) - {"cast"}
# Random numbers, in aten's words and in those of ONNX, OneFlow and Paddle.
DRAWS = frozenset(map(op_kind, families.DRAWS | families.DROPOUTS)) | frozenset(
    "randomnormal randomnormallike randomuniform randomuniformlike randomlike gaussian gaussianrandom uniformrandom "
    "truncatedgaussianrandom dropout1d dropout2d dropout3d".split()
)
