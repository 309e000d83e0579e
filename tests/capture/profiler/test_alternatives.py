"""Alternatives of slow parts of a step: they run on the recorded shapes, change nothing, and tell what they save."""

import pytest
import torch
from torch import nn

import nbkit
from nbkit.capture.profiler import alternatives
from nbkit.capture.profiler.alternatives import WORKS, measure
from nbkit.findings.time.cases import AttentionCase, Case, LossCase, NormCase, OptimizerCase, Place
from tests.capture.models import record

TRAINED, ASKED = Place("float32", "cpu", True), Place("bfloat16", "cpu", False)
ATTENTION = AttentionCase(4, 8, 12, 16, 20, True, False, TRAINED)
CASES: list[Case] = [
    ATTENTION,
    AttentionCase(4, 12, 8, 16, 16, False, True, TRAINED),
    AttentionCase(4, 8, 8, 16, 16, True, False, ASKED),
    NormCase((4, 8, 16), 1, False, "bfloat16", TRAINED),
    NormCase((4, 8, 16), 2, True, "float32", TRAINED),
    NormCase((4, 16), 1, True, "bfloat16", ASKED),
    *(LossCase(30, 7, *forms, TRAINED) for forms in ((True, False), (False, True), (False, False))),
    LossCase(30, 7, True, False, ASKED),
    *(OptimizerCase(kind, ((4, 8), (8,), ()), TRAINED) for kind in ("SGD", "Adam", "AdamW", "Adagrad")),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_case_runs(case: Case) -> None:
    measured = measure(case)
    assert measured is not None and measured.fraction > 0
    names = ("scaled_dot_product_attention", "rms_norm", "layer_norm", "cross_entropy", "foreach=True", "fused=True")
    assert measured.name in names


def is_exact(case: Case) -> bool:
    """Returns whether both ways give the same: with dropout each drops others, and an optimizer returns nothing."""
    return not (isinstance(case, OptimizerCase) or (isinstance(case, AttentionCase) and case.has_dropout))


@pytest.mark.parametrize("case", [case for case in CASES if is_exact(case)], ids=str)
def test_the_alternative_computes_the_same(case: Case) -> None:
    torch.set_grad_enabled(case.place.is_training)
    try:
        now, others = WORKS[type(case)](case)
        for other in others.values():
            torch.testing.assert_close(other(), now(), atol=2e-2, rtol=2e-2)
    finally:
        torch.set_grad_enabled(True)


def test_optimizers_do_the_same_step() -> None:
    case = OptimizerCase("AdamW", ((4, 8), (8,)), TRAINED)
    now, others = WORKS[OptimizerCase](case)
    steps = [work.__self__ for work in (now, *others.values())]  # type: ignore[attr-defined]
    before = [parameter.clone() for parameter in steps[0].param_groups[0]["params"]]
    for optimizer in steps:
        optimizer.step()
    assert [(group["foreach"], group["fused"]) for step in steps for group in step.param_groups] == [
        (False, None),
        (True, None),
        (None, True),
    ]
    for start, *parameters in zip(before, *(step.param_groups[0]["params"] for step in steps), strict=True):
        for parameter in parameters:  # the first step of Adam is as long as the rate, whatever the gradient
            torch.testing.assert_close(parameter, start * (1 - 1e-4 * 1e-2) - 1e-4)


def test_nothing_of_the_process_changes_and_nothing_is_recorded() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        trace = record(lambda: [measure(case) for case in CASES])
        assert not torch.is_grad_enabled() and torch.is_autocast_enabled("cpu")
    assert torch.equal(torch.get_rng_state(), before)
    assert len(trace.ops[trace.ops["level"] == "aten"]) == 0


def test_what_is_large_or_has_no_kernel_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(AttentionCase(64, 4096, 4096, 16, 16, False, False, TRAINED)) is None
    assert measure(NormCase((2**15, 2**15), 1, False, "float32", TRAINED)) is None
    assert measure(OptimizerCase("SGD", ((2**14, 2**14),), TRAINED)) is None
    assert measure(NormCase((4, 16), 1, False, "int64", Place("int64", "cpu", False))) is None
    monkeypatch.setattr(alternatives, "MOST_BYTES", 4 * 8 * 12 * 4)
    assert measure(ATTENTION) is not None
    monkeypatch.setattr(alternatives, "MOST_BYTES", 4 * 8 * 12 * 4 - 1)
    assert measure(ATTENTION) is None


def test_the_work_runs_in_turn_and_the_first_round_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device: what is waited for takes the time."""
    now, begun, order = [0.0], list[float](), list[str]()

    def work(name: str, seconds: list[float]) -> None:
        order.append(name)
        begun.append(seconds.pop(0))

    def wait() -> None:
        now[0] += begun.pop()

    monkeypatch.setattr(alternatives, "perf_counter", lambda: now[0])
    slow, fast = [9.0, 0.4, 0.2, 0.8, 0.5, 9.0], [0.1] * 6
    monkeypatch.setattr(alternatives, "MOST_S", 11.3)
    fractions = alternatives._fractions(lambda: work("slow", slow), [lambda: work("fast", fast)], wait)
    assert fractions == pytest.approx([0.5])  # of 0.125, 0.2, 0.25 and 0.5
    assert order == ["slow", "fast", "fast", "slow"] * 2 + ["slow", "fast"]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(64, 192)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(x).view(2, -1, 3, 2, 32).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / 32**0.5
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ value).transpose(1, 2).reshape(x.shape)


def test_a_recorded_step_has_the_case_of_its_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Case] = []
    monkeypatch.setattr("nbkit.capture.profiler.optime.measure", seen.append)
    model, x = nn.Sequential(Attention(), Attention()), torch.randn(2, 256, 64)
    step = lambda: model(x).mean().backward()  # noqa: E731
    nbkit.optime(warmup=1, savings=True).run(step)
    assert seen == [AttentionCase(4, 256, 256, 32, 32, is_masked=True, has_dropout=False, place=TRAINED)]
    nbkit.optime(warmup=1, shapes=True).run(step)
    assert len(seen) == 1  # runs nothing without being asked


def test_shapes_come_with_savings() -> None:
    trace = nbkit.optime(savings=True).run(lambda: torch.ones(3, 2).exp())
    assert trace.ops.loc[trace.ops["op"].str.startswith("aten.exp"), "input_shapes"].tolist() == ["[[3, 2]]"]


@pytest.mark.parametrize("place", [TRAINED, ASKED, Place("float64", "cpu", True)], ids=str)
def test_the_work_is_done_in_the_dtype_of_the_step(place: Place) -> None:
    for case in (AttentionCase(4, 8, 8, 16, 16, True, False, place), NormCase((4, 16), 1, True, place.dtype, place)):
        with torch.set_grad_enabled(place.is_training):
            now, others = WORKS[type(case)](case)
            results = [work() for work in (now, *others.values())]
        for result in results:
            for tensor in result if isinstance(result, tuple) else (result,):
                assert str(tensor.dtype) == f"torch.{place.dtype}"
