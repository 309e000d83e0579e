"""Judges opalign's verdict on 30 pairs that agree and 30 with one planted difference each, and says how many are right.

A pair is a model and another form of it: written by hand, in parts, compiled, exported, exported to ONNX, optimized by
onnxruntime, in float32, bfloat16 or float16 (of half precision the CPU provider of onnxruntime has float16 alone). The
output and what leads to it lie over 12 decades, in float16 over 5. A planted difference is a factor, a sum, or another
channel on the right side's output, of 1.5 to 1e6 times what rounding is allowed there, as 2-norms: `allowed_error` of
the pair without it.

Run from the repository root: `python -m bench.align_verdicts [--count N] [--only TEXT]`. Writes
out/bench/align_verdicts.md.
"""

import argparse
import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

import nbkit
from nbkit.trace.trace import Trace

OUT = Path(__file__).parents[1] / "out" / "bench" / "align_verdicts.md"
DECADES = (1e-6, 1e-3, 1.0, 1e3, 1e6)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
WIDTH, ROWS = 48, 12
KINDS = ("factor", "sum", "channel")


@dataclass(frozen=True)
class Pair:
    """Holds a pair; `planted` is the difference of the outputs in units of rounding, 0 where both are to agree."""

    name: str
    left: nn.Module
    right: Any
    x: Tensor
    planted: float = 0.0


class Planted(nn.Module):
    """Changes its input by `size` of its norm, in one of KINDS, not at all if that is 0; `rms` is that of its input."""

    def __init__(self, kind: str, size: float, rms: float = 1.0) -> None:
        super().__init__()
        self.kind, self.size, self.rms = kind, size, rms

    def forward(self, y: Tensor) -> Tensor:
        if not self.size:
            return y
        if self.kind == "factor":
            return y * (1 + self.size)
        if self.kind == "sum":
            return y + self.size * self.rms
        return torch.cat([y[..., :1] + self.size * self.rms * y.shape[-1] ** 0.5, y[..., 1:]], -1)


class Net(nn.Module):
    """Two layers behind a norm, with a gain of `scale`; `form` says how they are written."""

    def __init__(self, form: str, scale: float) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.form, self.scale, self.planted = form, scale, Planted("factor", 0.0)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x) if self.form != "by hand" else by_hand(x, self.norm)
        h = self.up(h) if self.form != "split" else split(h, self.up)
        h = nn.functional.gelu(h) if self.form != "by hand" else h * 0.5 * (1 + torch.erf(h / 2**0.5))
        return self.planted(self.down(h * self.scale))


class Attention(nn.Module):
    """Attention in one op or in steps, over values of `scale`."""

    def __init__(self, form: str, scale: float) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.form, self.scale, self.planted = form, scale, Planted("factor", 0.0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        v = v * self.scale
        if self.form == "by hand":
            y = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1) @ v
        else:
            y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.planted(self.out(y.transpose(1, 2).flatten(-2)))


def by_hand(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    y = x.float()
    y = (y - y.mean(-1, keepdim=True)) * torch.rsqrt(y.var(-1, unbiased=False, keepdim=True) + norm.eps)
    return (y * norm.weight.float() + norm.bias.float()).to(x.dtype)


def split(x: Tensor, linear: nn.Linear) -> Tensor:
    halves = zip(linear.weight.chunk(2), linear.bias.chunk(2), strict=True)
    return torch.cat([nn.functional.linear(x, weight, bias) for weight, bias in halves], -1)


WAYS = ("by hand", "split", "compile", "export", "onnx", "onnxruntime")


def pairs(planted: list[float]) -> Iterator[Pair]:
    """Yields a pair for each planted size, going through ways, dtypes, decades and kinds."""
    for number, size in enumerate(planted):
        way, dtype = WAYS[number % len(WAYS)], [*DTYPES][(number + number // len(WAYS)) % len(DTYPES)]
        if way.startswith("onnx") and dtype == "bfloat16":
            dtype = "float16"
        scale = DECADES[number % len(DECADES)]
        if dtype == "float16":
            scale = min(max(scale, 1e-3), 1e2)
        kind = Attention if number % 4 == 3 else Net
        yield made(kind, way, dtype, scale, size, KINDS[number % len(KINDS)])


def made(kind: Callable[..., Any], way: str, dtype: str, scale: float, size: float, planted: str) -> Pair:
    torch.manual_seed(3)
    x = (torch.randn(2, ROWS, WIDTH) * 2).to(DTYPES[dtype])
    form = way if way in ("by hand", "split") else "plain"
    left, other = (kind(one, scale).to(DTYPES[dtype]).eval() for one in ("plain", form))
    other.load_state_dict(copy.deepcopy(left.state_dict()))
    right: Any = other if form != "plain" else way
    if size:
        clean = aligned(left, right, x).frames["alignment"]
        allowed = float(clean.loc[clean["kind"].eq("op"), "allowed_error"].dropna().iloc[-1])
        rms = left(x).detach().float().square().mean().sqrt().item()
        other.planted = Planted(planted, size * allowed, rms)
        right = other if form != "plain" else turned(other, way, x)
    name = f"{kind.__name__} {way}, {dtype}, {scale:g}"
    return Pair(f"{name}, {planted}" if size else name, left, right, x, size)


def turned(model: nn.Module, way: str, x: Tensor) -> Any:
    """Returns what a way makes of a model with a planted difference."""
    if way == "compile":
        return torch.compile(model)
    if way == "export":
        return torch.export.export(model, (x,)).run_decompositions()
    from nbkit.capture.executions.export import exported_onnx

    return exported_onnx(model, (x,))[0]


def aligned(left: nn.Module, right: Any, x: Tensor) -> Trace:
    arrays = [x.numpy()] if hasattr(right, "ir_version") else None
    with torch.no_grad():
        return nbkit.opalign(left, right, inputs=(x,), right_inputs=arrays)


def sizes(count: int) -> list[float]:
    """Returns sizes of planted differences from 1.5 to 1e6 times rounding, evenly in their logarithm."""
    return [1.5 * (1e6 / 1.5) ** (number / (count - 1)) for number in range(count)]


def judged(pair: Pair) -> tuple[bool, str, float]:
    """Returns whether the verdict is right, what it is in a word, and the seconds."""
    begin = perf_counter()
    trace = aligned(pair.left, pair.right, pair.x)
    said = trace.brief().split("\n\n")[0]
    first = trace.meta["first_divergence"]
    agrees = first is None and said.startswith("The two agree")
    right = first is not None if pair.planted else agrees
    return right, said[:150].replace("|", "/"), perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30, help="pairs that agree, and as many that do not (default: 30)")
    parser.add_argument("--only", default="", metavar="TEXT", help="pairs with this in their name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows, count = [], 0
    for pair in chain(pairs([0.0] * options.count), pairs(sizes(options.count))):
        if options.only not in pair.name:
            continue
        right, said, seconds = judged(pair)
        count += right
        planted = f"{pair.planted:.3g}" if pair.planted else "-"
        rows.append(f"| {pair.name} | {planted} | {'right' if right else 'WRONG'} | {seconds:.1f} | {said} |")
        print(rows[-1], flush=True)
    head = ["| pair | planted, in roundings | verdict | s | said |", "|---|---|---|---|---|"]
    text = "\n".join(["# opalign's verdicts", "", *head, *rows, "", f"{count} of {len(rows)} verdicts right.", ""])
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(f"{count} of {len(rows)} verdicts right.")


if __name__ == "__main__":
    main()
