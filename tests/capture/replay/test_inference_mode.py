"""Inference mode: ops that autograd takes apart elsewhere come whole to a dispatch mode; their parts run as bare."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import nbkit
from nbkit.trace.trace import Trace

MODELS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "bilinear": (nn.Upsample(scale_factor=2, mode="bilinear"), (1, 3, 8, 8)),
    "bicubic": (nn.Upsample(scale_factor=2, mode="bicubic"), (1, 3, 8, 8)),
    "lstm": (nn.LSTM(16, 16), (5, 4, 16)),
    "norm": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), (2, 3, 8, 8)),
}
VERBS: dict[str, Callable[[], object]] = {
    "opdiff": nbkit.opdiff, "opcheck": nbkit.opcheck, "opstable": nbkit.opstable,
    "statistics": lambda: nbkit.optrace(values="stats"),
}  # fmt: skip


def first(out: Tensor | tuple[Tensor, ...]) -> Tensor:
    return out if isinstance(out, Tensor) else out[0]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", MODELS)
def test_each_result_has_the_bits_of_the_bare_model(name: str, verb: str) -> None:
    model, shape = MODELS[name]
    x = torch.randn(*shape)
    with torch.inference_mode():
        bare = first(model(x))
        with VERBS[verb]():  # type: ignore[attr-defined]
            seen = first(model(x))
    assert torch.equal(seen, bare)


def ops(trace: Trace) -> list[str]:
    return trace.ops.loc[trace.ops["level"] == "aten", "op"].tolist()


@pytest.mark.parametrize("model", [nn.GRU(32, 48, num_layers=2), nn.TransformerEncoderLayer(32, 4, 64)])
def test_the_ops_and_their_cost_are_those_without_gradients(model: nn.Module) -> None:
    x = torch.randn(8, 12, 32)
    told = {}
    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), nbkit.opcost() as cost:
            model(x)
        with mode(), nbkit.optrace(values="stats") as trace:
            model(x)
        told[mode] = ops(cost), ops(trace), int(cost.memory["allocated_bytes"].max()), cost.meta["unknown_flops"]
    assert told[torch.inference_mode] == told[torch.no_grad]
