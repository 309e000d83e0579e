"""Evaluation with autograd on: what is named, and right uses of gradients in eval mode."""

import json

import pytest
import torch
from torch import nn

from tests.findings.waste.steps import found, only

DATA = [torch.randn(16, 8) for _ in range(3)]


def model():
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 4)).eval()


NET, FROZEN, HEAD, TRAINING = model(), model().requires_grad_(False), nn.Linear(4, 4), model().train()


def kept(net=NET):
    outs = []
    for x in DATA:
        outs.append(net(x))
    return torch.cat(outs).argmax(-1)


def let_go():
    return [NET(x).argmax(-1) for x in DATA]


def test_graphs_that_stay_alive_are_named():
    finding = only(kept)
    assert (finding.rule, finding.severity, finding.count) == ("unused_graph", "hint", 3)
    assert finding.source_text == "outs.append(net(x))"
    # Input, two results of 32, one of 4, in float32, of each call.
    assert finding.effect_bytes == 3 * 16 * (8 + 32 + 32 + 4) * 4
    assert finding.message.startswith("Sequential runs 3 times in eval mode with autograd on, and the recording has no")
    assert "stay alive together until aten.cat at " in finding.message
    assert finding.message.endswith("and hold up to 14.3 KiB")
    assert json.loads(finding.evidence)["model_calls"] == 3
    assert "torch.no_grad()" in finding.advice
    assert "torch.inference_mode()" in finding.advice


def test_a_graph_per_call_is_told_as_such():
    finding = only(let_go)
    assert finding.effect_bytes == 16 * (8 + 32 + 32 + 4) * 4
    assert "each call builds a graph, which stays alive as long as its result, and holds up to " in finding.message


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 32)

    def forward(self, x):
        return self.inner(x).to_sparse()


SPARSE = Sparse().eval()


def test_results_without_one_memory_add_nothing_to_what_is_held():
    """torch gives no storage of a sparse tensor; the results that it was made from have one."""
    finding = only(lambda: torch.cat([SPARSE(x) for x in DATA]))
    assert finding.effect_bytes == 3 * 16 * (8 + 32) * 4


def trained_and_evaluated():
    TRAINING.train()
    TRAINING(DATA[0]).square().mean().backward()
    TRAINING.eval()
    kept(TRAINING)
    TRAINING.train()


def test_an_evaluation_beside_training_is_named():
    finding = only(trained_and_evaluated)
    assert (finding.rule, finding.count) == ("unused_graph", 3)
    assert finding.effect_bytes == 3 * 16 * (8 + 32 + 32 + 4) * 4
    assert ", and no backward pass uses it: their graphs stay alive together until aten.cat" in finding.message


def taught(teacher):
    """Learns from a teacher in eval mode, through which the gradient goes on to what made its input."""
    for x in DATA:
        teacher(HEAD(TRAINING(x)).repeat(1, 2)).square().mean().backward()


def without(mode):
    def step():
        with mode:
            kept()

    return step


def saliency():
    for x in DATA:
        x = x.clone().requires_grad_()
        torch.autograd.grad(NET(x).max(), x)


def forward_of_saliency():
    return [NET(x.clone().requires_grad_()) for x in DATA]


def backward_later():
    sum(NET(x).square().mean() for x in DATA).backward()


def once():
    return NET(DATA[0])


def training():
    return [TRAINING(x) for x in DATA]


def frozen():
    return [FROZEN(x) for x in DATA]


def frozen_body():
    return [HEAD(FROZEN(x)) for x in DATA]


RIGHT = {
    "no_grad": without(torch.no_grad()),
    "inference_mode": without(torch.inference_mode()),
    "gradients of the input": saliency,
    "a graph for gradients of the input": forward_of_saliency,
    "a backward pass": backward_later,
    "one call": once,
    "training": training,
    "frozen": frozen,
    "a loss that a model in eval mode gives": lambda: taught(NET),
    "a new head on a frozen body": frozen_body,
}


@pytest.mark.parametrize("case", RIGHT)
def test_right_uses_are_not_named(case):
    assert found(RIGHT[case]) == []


def test_casts_of_autocast_have_a_graph_under_no_grad_and_are_none_of_the_evaluation():
    def evaluated(grad):
        with torch.set_grad_enabled(grad), torch.autocast("cpu", torch.bfloat16):
            results = [NET(x) for x in DATA]
            assert [result.requires_grad for result in results] == [grad] * len(DATA)  # what torch itself says
            return [result.argmax(-1) for result in results]

    assert found(lambda: evaluated(False)) == []
    assert found(lambda: evaluated(True)) == [("unused_graph", "hint")]
