"""All planted regions, by kind."""

import numpy as np

from nbkit.analysis.align.kinds.precision.rounding import rounded
from tests.analysis.align.kinds.regions import (
    Planted,
    angles,
    causal,
    ended,
    layer_norm,
    masked,
    parameter,
    piece,
    randn,
    region,
    rms_norm,
    rotated,
    single,
    softmax,
)

X = randn(2, 4, 16, 8)  # batch, head, position, element
H = randn(2, 16, 32)  # batch, position, element
W = randn(32, 32, seed=1, scale=0.2)


def orders():
    heads = X[:, [0, 2, 1, 3]]
    yield Planted("transposed", "square weight", region(W, W.T, kind="parameter"), ("axes 0 and 1",))
    yield Planted("transposed", "scores", region(s := randn(2, 4, 16, 16), s.swapaxes(-1, -2)), ("axes 2 and 3",))
    yield Planted(
        "transposed", "parameter of a product", region(H @ W, H @ W.T, [piece("x", H), parameter("w", W)]), ("w",)
    )
    merged = X.swapaxes(1, 2).reshape(2, 16, 32)
    yield Planted("transposed", "heads not moved", region(merged, X.reshape(2, 16, 32)), ("16 positions and 4 heads",))
    yield Planted("permuted_heads", "axis of heads", region(X, heads), ("4 heads in the order 0, 2, 1, 3",))
    blocks = H.reshape(2, 16, 4, 8)[:, :, [3, 0, 1, 2]].reshape(2, 16, 32)
    yield Planted("permuted_heads", "last axis", region(H, blocks), ("4 heads in the order 3, 0, 1, 2", "8 wide"))
    rows = W.reshape(4, 8, 32)[[1, 0, 3, 2]].reshape(32, 32)
    yield Planted("permuted_heads", "rows of a weight", region(W, rows, kind="parameter"), ("1, 0, 3, 2", "axis 0"))
    fused = randn(2, 16, 3 * 4 * 8)
    split = fused.reshape(2, 16, 3, 4, 8).swapaxes(2, 3).reshape(2, 16, 96)
    yield Planted("permuted_heads", "fused q, k, v", region(fused, split), ("12 heads", "3 x 4"))
    k = randn(2, 2, 16, 8)
    again, tiled = np.repeat(k, 2, axis=1), np.tile(k, (1, 2, 1, 1))
    words = ("2 key and value heads", "in a row on the left", "all again on the right")
    yield Planted("repeated_heads", "axis of heads", region(again, tiled, [piece("k", k)]), words)
    yield Planted("repeated_heads", "tile on the left", region(tiled, again), ("all again on the left",))
    w = randn(4, 8, 32)
    pair = np.repeat(w, 3, axis=0).reshape(96, 32), np.tile(w, (3, 1, 1)).reshape(96, 32)
    yield Planted("repeated_heads", "rows of a weight", region(*pair, kind="parameter"), ("4 key and value heads",))


def cuts():
    fused = randn(2, 16, 3 * 4 * 8)
    thirds, elements = (fused.reshape(2, 16, *sizes) for sizes in ((3, 4, 8), (4, 8, 3)))
    parts = [
        (thirds[:, :, 0], "thirds of its last axis"),
        (fused.reshape(2, 16, 4, 3, 8)[..., 0, :], "thirds of each of 4 heads"),
        (elements[..., 0], "every third element"),
    ]
    for (one, here), (other, there) in (parts[:2], parts[1::-1], parts[::2]):
        words = "from qkv", f"as {here}", f"the right one as {there}"
        inputs = [piece("qkv", fused)]
        yield Planted("fused_order", here, region(one.swapaxes(1, 2), other.swapaxes(1, 2), inputs), words)


def axes():
    for kernel in ("flash_attention_for_cpu", "efficient_attention", "fused_attention_math"):
        reads = [randn(2, 4, 16, 8, seed=seed) for seed in range(3)]
        turned = [one.swapaxes(1, 2) for one in reads]
        one, other = (softmax(q @ k.swapaxes(-1, -2)) @ v for q, k, v in (reads, turned))
        made = region(one, other.swapaxes(1, 2), [], [*map(piece, "qkv", reads)], [*map(piece, "qkv", turned)])
        made = ended(made, f"aten._scaled_dot_product_{kernel}.default")
        yield Planted("attention_axis", kernel, made, ("over the axis of 16, the right one over that of 4",))


def rotary():
    theta, inputs = angles(16, 8), [piece("q", X)]
    half, other = rotated(X, theta), rotated(X, theta, "interleaved")
    yield Planted(
        "rotary_layout", "turned q", region(half, other, inputs), ("q", "half-split on the left", "interleaved")
    )
    order = np.arange(8).reshape(2, 4).T.reshape(-1)
    yield Planted("rotary_layout", "elements of heads", region(X, X[..., order]), ("head of 8",))
    rows = W.reshape(4, 8, 32)[:, order].reshape(32, 32)
    yield Planted("rotary_layout", "rows of a weight", region(rows, W, kind="parameter"), ("head of 8", "axis 0"))
    part = angles(16, 4)
    pair = rotated(X, part), rotated(X, part, "interleaved")
    yield Planted("rotary_layout", "partial", region(*pair, inputs), ("4 of 8 elements",))
    cos, sin = (np.concatenate([f(theta)] * 2, -1) for f in (np.cos, np.sin))
    turned = np.stack([-X[..., 1::2], X[..., 0::2]], -1).reshape(X.shape)
    yield Planted("rotary_layout", "tables kept", region(half, single(X * cos + turned * sin), inputs), ("tables",))
    cos, sin = (np.repeat(f(theta), 2, -1) for f in (np.cos, np.sin))
    one = region(half, single(X * cos + np.concatenate([-X[..., 4:], X[..., :4]], -1) * sin), inputs)
    yield Planted("rotary_layout", "pairs kept", one, ("with pairs that are half-split",))
    flat = X.swapaxes(1, 2).reshape(2, 16, 32)
    pair = [one.swapaxes(1, 2).reshape(2, 16, 32) for one in (half, other)]
    yield Planted("rotary_layout", "heads merged", region(*pair, [piece("q", flat)]), ("interleaved on the right",))
    words = ("10,000 on the left", "500,000 on the right")
    yield Planted("rotary_base", "turned q", region(half, rotated(X, angles(16, 8, 5e5)), inputs), words)
    inverse = [single(base ** (-np.arange(32) / 32)) for base in (1e4, 5e5)]
    yield Planted("rotary_base", "inverse frequencies", region(*inverse, kind="buffer"), words)
    growing = [single(base ** (np.arange(32) / 32)) for base in (1e4, 5e5)]
    yield Planted("rotary_base", "powers of the base", region(*growing), words)
    tables = [single(np.tile(np.cos(angles(64, 16, base)), 2)) for base in (1e4, 5e5)]
    yield Planted("rotary_base", "cosines", region(*tables), words)
    sines = [single(np.sin(angles(64, 16, base)))[None] for base in (1e4, 12_345)]
    yield Planted("rotary_base", "sines", region(*sines), ("12,345",), rounds=False)
    yield Planted(
        "rotary_base", "angles", region(*[single(angles(64, 16, base)).T for base in (1e4, 1e6)]), ("1,000,000",)
    )
    long = randn(1, 2, 64, 32)
    pair = rotated(long, angles(64, 32)).swapaxes(1, 2), rotated(long, angles(64, 32, 5e5)).swapaxes(1, 2)
    yield Planted("rotary_base", "positions before heads", region(*pair, [piece("q", long)]), words)
    moved = rotated(X, angles(16, 8, start=1))
    yield Planted("position_shifted", "turned q", region(half, moved, inputs), ("plus 1",))
    pair = single(np.cos(angles(16, 8))), single(np.cos(angles(16, 8, start=2)))
    yield Planted("position_shifted", "cosines", region(*pair), ("shifted by 2",))
    ids = np.arange(16)[None]
    yield Planted("position_shifted", "ids", region(ids, ids + 2), ("plus 2",))
    table = randn(20, 32, seed=4)
    pair = H + table[:16], H + table[2:18]
    yield Planted(
        "position_shifted", "added rows", region(*pair, [piece("x", H), parameter("p", table)]), ("p", "2 on the right")
    )


def batch_norms():
    for shape in ((64, 16), (8, 16, 5, 5)):
        x, form = 2 * randn(*shape) + 1, (1, -1, *[1] * (len(shape) - 2))
        axes = tuple(axis for axis in range(len(shape)) if axis != 1)
        w, b, m, v = 1 + 0.3 * randn(16, seed=2), randn(16, seed=3), randn(16, seed=4), 1 + randn(16, seed=5) ** 2
        for affine in ((w, b), (np.ones(16), np.zeros(16))):
            scale, shift = (one.reshape(form) for one in affine)
            batch, running = (
                single((x - mean.reshape(form)) / np.sqrt(square.reshape(form) + 1e-5) * scale + shift)
                for mean, square in ((x.mean(axes), x.var(axes)), (m, v))
            )
            kept = [parameter("w", w), parameter("b", b)] if affine[0] is w else []
            inputs = [piece("x", x), *kept, parameter("m", m), parameter("v", v)]
            name = f"{len(shape)} axes, {len(kept)} parameters"
            words = ("statistics of the batch on the left", "torch.onnx.export")
            yield Planted("batch_statistics", name, region(batch, running, inputs), words, rounds=False)
            words = ("its running statistics on the left",)
            yield Planted("batch_statistics", f"{name}, swapped", region(running, batch, inputs), words, rounds=False)


def norms():
    for scale in (1.0, 0.02):
        x = H * scale * (0.5 + np.random.default_rng(3).random((2, 16, 1), dtype=np.float32))
        w, b = 1 + 0.1 * randn(32, seed=2), randn(32, seed=3)
        words = ("1e-05 on the left", "1e-06 on the right")
        pair = rms_norm(x, 1e-5, w), rms_norm(x, 1e-6, w)
        small = scale < 1
        yield Planted("epsilon", f"rms {scale}", region(*pair, [piece("x", x), parameter("w", w)]), words, rounds=small)
        pair = layer_norm(x, 1e-5, w, b), layer_norm(x, 1e-6, w, b)
        inputs = [piece("x", x), parameter("w", w), parameter("b", b)]
        yield Planted("epsilon", f"layer {scale}", region(*pair, inputs), words, rounds=False)
    mean = (x**2).mean(-1, keepdims=True)
    pair = mean + np.float32(1e-5), mean + np.float32(1e-6)
    yield Planted("epsilon", "added", region(*pair, [piece("v", mean)]), words, rounds=False)
    pair = [1 / np.sqrt(mean + e) for e in np.float32([1e-5, 1e-6])]
    yield Planted("epsilon", "rsqrt", region(*pair, [piece("x", x)]), words, rounds=False)
    yield Planted("epsilon", "constant", region(np.float32(1e-5), np.float32(1e-6), kind="constant"), words)
    x = 2 * H + 1
    yield from batch_norms()
    inputs = [piece("x", x), parameter("w", W), parameter("g", g := 1 + 0.3 * randn(32, seed=8))]
    yield Planted(
        "norm_place", "of a product", region(rms_norm(x, weight=g) @ W.T, x @ W.T, inputs), ("w", "normalized x")
    )
    y = randn(2, 16, 32, seed=9)
    inputs = [piece("x", x), piece("y", y), parameter("g", g)]
    pair = rms_norm(x + y, weight=g), x + rms_norm(y, weight=g)
    yield Planted("norm_place", "of a sum", region(*pair, inputs), ("norm(x + y) on the left", "x + norm(y)"))
    yield Planted("norm_place", "one side alone", region(y * 2 + 1, layer_norm(y * 2 + 1)), ("layer norm", "lacks"))
    yield Planted("norm_place", "input itself", region(rms_norm(x, weight=g), x, inputs), ("norm(x) on the left",))


def linear():
    words = ("0.125 times", "1/sqrt(64)")
    q = randn(2, 4, 16, 64)
    yield Planted("scale", "scores", region(s := randn(2, 4, 16, 16), s * 0.125, [piece("q", q)]), words)
    yield Planted("scale", "embedding", region(H, H * np.float32(32**0.5), [piece("x", H)]), ("sqrt(32)",))
    yield Planted("scale", "mask stays", region(*[masked(s * f, causal(16)) for f in (1, 0.5)]), ("0.5 times",))
    b = randn(32, seed=3)
    y = H @ W.T
    inputs = [piece("x", H), parameter("w", W)]
    bias = [parameter("b", b)]
    yield Planted("missing_bias", "right", region(y + b, y, inputs, left_only=bias), ("right one lacks", "b."))
    yield Planted("missing_bias", "left", region(y, y + b, inputs, right_only=bias), ("left one lacks", "b."))
    yield Planted("missing_bias", "of channels", region(X, X + randn(4, 1, 1)), ("axis 1",))
    yield Planted("missing_bias", "zero", region(b, 0 * b, kind="parameter"), ("right one is 0",))
    yield Planted("missing_bias", "not known", region(y, y + b, inputs), ("axis 2",))
    res = [piece("x", H), piece("y", y)]
    yield Planted("missing_residual", "right", region(H + y, y, res), ("right one lacks the residual x",))
    yield Planted("missing_residual", "left", region(y * 2, y * 2 + H, [piece("x", H)]), ("left one lacks", "x"))
    g = 1 + 0.2 * randn(32, seed=8)
    pair = rms_norm(H + y, 1e-5, g), rms_norm(y, 1e-5, g)
    inputs = [piece("x", H), piece("y", y), parameter("g", g)]
    yield Planted(
        "missing_residual", "before a norm", region(*pair, inputs), ("lacks the residual x", "before its norm")
    )
    pair = H + y * 3, y * 3
    yield Planted("missing_residual", "near", region(*pair, [piece("y", y)], agreed={"x": H}), ("residual x",))


def masks():
    scores = randn(2, 4, 16, 16)
    for low in (-np.inf, -1e9, np.finfo(np.float32).min):
        pair = masked(scores, causal(16), low), masked(scores, causal(16, shift=1), low)
        yield Planted("mask_shifted", f"scores {low:.0g}", region(*pair), ("shifted by 1", "see more"))
    strict = causal(16, shift=-1)
    strict[0, 0] = False
    pair = softmax(masked(scores, causal(16))), softmax(masked(scores, strict))
    yield Planted("mask_shifted", "probabilities", region(*pair), ("shifted by -1", "fewer"))
    yield Planted("mask_shifted", "flags", region(~causal(8), ~causal(8, shift=2)), ("shifted by 2",))
    zero = np.zeros((16, 16), np.float32)
    pair = masked(zero, causal(16)), masked(zero, ~causal(16))
    yield Planted("mask_inverted", "added mask", region(*pair), ("and the reverse",))
    yield Planted("mask_inverted", "flags", region(causal(16), ~causal(16)), ("and the reverse",))
    pair = softmax(masked(scores, causal(16), -1e9)), softmax(masked(scores, ~causal(16), -1e9))
    yield Planted("mask_inverted", "probabilities", region(*pair), ("and the reverse",))
    words = "The {} one masks nothing of what the {} one masks, as if it had no mask"
    pair = softmax(masked(scores, causal(16))), softmax(scores)
    yield Planted("missing_mask", "probabilities", region(*pair), (words.format("right", "left"),))
    yield Planted("missing_mask", "of the left", region(*pair[::-1]), (words.format("left", "right"),))
    pair = softmax(masked(scores, causal(16, shift=-1) & ~np.eye(16, dtype=bool), -1e9)), softmax(scores)
    yield Planted("missing_mask", "low scores", region(*pair), (words.format("right", "left"),))
    mask = causal(16, shift=-1)
    right = masked(scores, mask)
    dirty = softmax(right)
    pair = softmax(masked(scores, mask, -1e9)), dirty
    inner = [piece("masked", right)]
    yield Planted("nan", "masked rows", region(*pair, right_ops=inner), ("128 elements", "wholly masked"))
    broken = H.copy()
    broken[0, 3, 5] = np.nan
    padded = causal(16)
    padded[:2] = True
    pair = masked(zero, padded, -1e9), masked(zero, padded)
    yield Planted("nan", "infinite mask", region(*pair), ("-Inf", "2 rows wholly"))
    yield Planted("nan", "one", region(H, broken), ("1 element", "[0, 3, 5]"))
    broken = H.copy()
    broken[1, 2] = np.inf
    yield Planted("nan", "inf", region(H, broken), ("Inf", "32 elements", "[1, 2, 0]"))


def functions():
    import torch
    import torch.nn.functional as F

    def made(name, value):
        value = torch.from_numpy(np.ascontiguousarray(value))
        known = {
            "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
            "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
            "relu2": lambda x: F.relu(x) ** 2,
            "hardswish": F.hardswish,
        }
        return known.get(name, getattr(F, name, None))(value).numpy()

    a, b = randn(2, 16, 32, seed=6), randn(2, 16, 32, seed=7)
    names = "gelu_tanh gelu, silu gelu, relu relu2, tanh sigmoid, mish silu, elu leaky_relu, softplus relu"
    pairs = f"{names}, gelu quick_gelu, hardswish silu".split(", ")
    for first, second in map(str.split, pairs):
        one = region(made(first, a), made(second, a), [piece("a", a)])
        words = f"{first} on the left", f"{second} on the right"
        yield Planted(
            "activation", f"{first} {second}", one, words, rounds=first != "gelu_tanh" and second != "quick_gelu"
        )
    inputs = [piece("a", a), piece("b", b)]
    pair = made("silu", a) * b, made("gelu", a) * b
    yield Planted("activation", "gate", region(*pair, inputs), ("gate a", "silu on the left", "gelu on"))
    both = np.concatenate([a, b], -1)
    yield Planted("activation", "fused gate", region(*pair, [piece("ab", both)]), ("first half of ab",))
    pair = a * made("silu", b), a * made("gelu", b)
    words = ("gate the second half of ab", "silu on the left", "gelu on")
    yield Planted("activation", "fused gate behind", region(*pair, [piece("ab", both)]), words)
    yield Planted("activation", "none", region(made("silu", a), a, [piece("a", a)]), ("none on the right",))
    pair = made("silu", a) * b, made("silu", b) * a
    yield Planted("swapped_operands", "gate and up", region(*pair, inputs), ("silu to b", "left one to a"))
    yield Planted("swapped_operands", "fused gate and up", region(*pair, [piece("ab", both)]), ("second half of ab",))
    yield Planted("swapped_operands", "input", region(made("silu", a), made("silu", b), inputs), ("silu to b",))
    yield Planted("swapped_operands", "difference", region(a - b, b - a, inputs), ("b - a",), also=("scale",))
    p, k, v = softmax(randn(2, 4, 16, 16)), randn(2, 4, 16, 8, seed=1), randn(2, 4, 16, 8, seed=2)
    inputs = [piece("p", p), piece("v", v)]
    yield Planted("swapped_operands", "k for v", region(p @ v, p @ k, inputs, agreed={"k": k}), ("takes k", "takes v"))
    yield Planted("swapped_operands", "exchanged", region(a, b, agreed={"k": b}), ("what k should be",))
    one = region(a, b, [piece("q", a)], agreed={"k": b})
    yield Planted("swapped_operands", "exchanged input", one, ("what k should be",))
    pair = X @ k.swapaxes(-1, -2), k @ X.swapaxes(-1, -2)
    yield Planted(
        "swapped_operands", "q and k", region(*pair, [piece("q", X), piece("k", k)]), ("q and k",), also=("transposed",)
    )


def weights():
    other = randn(32, 32, seed=12)
    one = region(W, other, kind="parameter", agreed={"gate": W, "up": other})
    yield Planted("swapped_operands", "parameters", one, ("left one is the parameter gate", "right one up"))
    changed = W.copy()
    changed[3, 5] += 1
    yield Planted(
        "other_weights", "one", region(W, changed, kind="parameter"), ("1 element of 1,024", "[3, 5]"), rounds=False
    )
    one = region(W, randn(32, 32, seed=12), kind="parameter")
    yield Planted("other_weights", "unrelated", one, ("1,024 of 1,024", "unrelated"), rounds=False)
    one = region(W, W + randn(32, 32, seed=12, scale=0.1), kind="parameter")
    yield Planted("other_weights", "perturbed", one, ("their correlation is 0.",), rounds=False)
    one = region(W, randn(32, 32, seed=12), kind="parameter", agreed={"wte.weight": W})
    yield Planted("untied_weight", "left tied", one, ("left one equals wte.weight",))
    one = region(randn(32, 32, seed=12), W, kind="parameter", agreed={"wte.weight": W})
    yield Planted("untied_weight", "right tied", one, ("right one equals wte.weight",))
    g, b = (1 + 0.3 * randn(32, seed=one) for one in (8, 9))
    inputs = [piece("x", H), parameter("g", g), parameter("b", b)]
    pair = layer_norm(H, 1e-5, g, b), layer_norm(H, 1e-5, 1 + g, b)
    yield Planted("other_weights", "gain plus one", region(*pair, inputs), ("1 + g, the left one by g.",))
    one = region(pair[0], layer_norm(H, 1e-5, b, g), inputs)
    yield Planted("other_weights", "gain and bias", one, ("multiplies by b and adds g",))
    inputs = [piece("u", unit := rms_norm(H)), parameter("g", g)]
    yield Planted("other_weights", "gain", region(unit * g, unit * (1 + g), inputs), ("1 + g",), also=("scale",))
    one = region(unit * g, unit, inputs)
    yield Planted("other_weights", "no gain", one, ("lacks the gain g",), also=("scale", "norm_place"))
    shared, own = [parameter("wte", W)], [parameter("head.weight", other)]
    pair = H @ W.T, H @ other.T
    one = region(*pair, [piece("x", H)], left_only=shared, right_only=own, agreed={"e": W})
    words = ("right one multiplies x by a parameter of its own, head.weight",)
    yield Planted("untied_weight", "of a product", one, words)
    steps = [*own, piece("t", other.T)]
    one = region(*pair, [piece("x", H)], left_only=[piece("t_1", W.T)], right_ops=steps, agreed={"e": W})
    yield Planted("untied_weight", "of a product, inside", one, ("of its own", "t_1"))
    one = region(W, W + 1e-2, kind="parameter", agreed={"wte.weight": W, "other": randn(32, 32, seed=2)})
    yield Planted("untied_weight", "shifted", one, ("left one equals wte.weight",))


def roundings():
    p = softmax(randn(2, 4, 16, 16))
    for dtype in ("bfloat16", "float16"):
        low = single(rounded(p.astype(np.float64), dtype))
        yield Planted("accumulation_dtype", dtype, region(p, low), (f"right one is computed in {dtype}",), rounds=False)
    yield Planted("accumulation_dtype", "left", region(low, p), ("left one is computed in float16",), rounds=False)
    scores = rounded(randn(2, 4, 16, 16).astype(np.float64), "bfloat16")
    top = np.exp(rounded(scores - scores.max(-1, keepdims=True), "bfloat16"))
    steps = rounded(rounded(top, "bfloat16") / top.sum(-1, keepdims=True), "bfloat16")
    yield Planted("accumulation_dtype", "softmax", region(softmax(scores), steps), ("bfloat16",), rounds=False)


ALL = [
    one
    for family in (orders, cuts, axes, rotary, norms, linear, masks, functions, weights, roundings)
    for one in family()
]
