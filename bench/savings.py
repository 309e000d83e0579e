"""Holds what optime(savings=True) says a fused op saves to what the step takes with it: `python -m bench.savings`."""

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.nn import functional

import nbkit
from bench.harness.ratios import markdown

Step = Callable[[], object]


class Attention(nn.Module):
    """Causal attention of 4 heads, of single ops or fused."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.qkv, self.fused = nn.Linear(256, 768), fused

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).view(len(x), -1, 3, 4, 64).permute(2, 0, 3, 1, 4)
        if self.fused:
            out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(-2, -1) / 8
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            out = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ value
        return out.transpose(1, 2).reshape(x.shape)


class Norm(nn.Module):
    """An RMS norm or layer norm, of single ops or fused."""

    def __init__(self, fused: bool, is_centred: bool) -> None:
        super().__init__()
        self.weight, self.fused, self.is_centred = nn.Parameter(torch.ones(256)), fused, is_centred

    def forward(self, x: Tensor) -> Tensor:
        if self.fused:
            norm = functional.layer_norm if self.is_centred else functional.rms_norm
            return norm(x, (256,), self.weight, eps=1e-6)
        if self.is_centred:
            x = x - x.mean(-1, keepdim=True)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def attention(fused: bool) -> Step:
    model, x = nn.Sequential(*(Attention(fused) for _ in range(4))), torch.randn(4, 256, 256)
    return lambda: model(x).sum().backward()


def norm(fused: bool, is_centred: bool) -> Step:
    layers = [layer for _ in range(8) for layer in (nn.Linear(256, 256), Norm(fused, is_centred))]
    model, x = nn.Sequential(*layers), torch.randn(4, 64, 256)
    return lambda: model(x).sum().backward()


def loss(fused: bool) -> Step:
    head, x, targets = nn.Linear(64, 8192), torch.randn(512, 64), torch.randint(0, 8192, (512,))

    def step() -> None:
        logits = head(x)
        if fused:
            functional.cross_entropy(logits, targets).backward()
        else:
            (-logits.softmax(-1).add(1e-9).log().gather(-1, targets[:, None]).mean()).backward()

    return step


def optimizer(fused: bool) -> Step:
    model, x = nn.Sequential(*(nn.Linear(64, 64) for _ in range(48))), torch.randn(8, 64)
    adam = torch.optim.AdamW(model.parameters(), foreach=False, fused=fused)

    def step() -> None:
        model(x).sum().backward()
        adam.step()
        adam.zero_grad()

    return step


STEPS = {
    "attention": ("attention", attention),
    "RMS norm": ("norm", partial(norm, is_centred=False)),
    "layer norm": ("norm", partial(norm, is_centred=True)),
    "cross entropy": ("loss", loss),
    "AdamW": ("optimizer", optimizer),
}


def seconds(steps: dict[bool, Step], rounds: int) -> dict[bool, float]:
    """Returns the median time of each step; they run in turn."""
    times: dict[bool, list[float]] = {fused: [] for fused in steps}
    for _ in range(rounds + 1):
        for fused, step in steps.items():
            start = perf_counter()
            step()
            times[fused].append(perf_counter() - start)
    return {fused: median(some[1:]) for fused, some in times.items()}


def row(name: str, rule: str, make: Callable[[bool], Step], rounds: int) -> list[str]:
    """Returns the name, what optime says is saved, and what is."""
    steps = {fused: make(fused) for fused in (False, True)}
    trace = nbkit.optime(warmup=1, repeats=3, savings=True).run(steps[False])
    said = trace.findings.loc[trace.findings["rule"] == rule, "message"].tolist()
    took = seconds(steps, rounds)
    saved = 1 - took[True] / took[False]
    return [name, said[0].rpartition("; ")[2] if said else "nothing to save", f"{saved:.0%}"]


def main() -> None:
    """Prints a row for each kind of step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.manual_seed(0)
    print(markdown(["step", "optime says", "measured"], [row(name, *step, rounds) for name, step in STEPS.items()]))


if __name__ == "__main__":
    main()
