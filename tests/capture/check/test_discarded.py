"""Tests that an Inf of which only integers are made is no finding, and that any other use keeps it one."""

import math

import pytest
import torch
from torch import nn
from torch.library import _scoped_library

import nbkit
from tests.capture.check.test_findings import found, kinds

POSITIONS = torch.arange(40)
OLDER = torch.zeros(40)


@pytest.fixture(params=["native", "python"], autouse=True)
def recorder(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


def bucket(positions, buckets=32, farthest=128):
    """T5's bucket of a distance, as in transformers: the logarithm of 0 is cast to an integer that where() hides."""
    exact = buckets // 2
    large = exact + (torch.log(positions.float() / exact) / math.log(farthest / exact) * (buckets - exact)).to(
        torch.long
    )
    large = torch.min(large, torch.full_like(large, buckets - 1))
    return torch.where(positions < exact, positions, large)


def logarithm():
    return POSITIONS.float().log()


def in_place():
    return POSITIONS.float().log_().mul_(2).to(torch.int32)


def changed_by_turns():
    logarithms, others = logarithm(), torch.zeros(40)
    others.add_(logarithms)
    logarithms.add_(others)
    return others.long(), logarithms.long()


def seen_through_a_view():
    return logarithm().view(8, 5)[1:].t().long()


def in_another_dtype():
    return logarithm().double().clamp(max=5).floor().bool()


def in_inference_mode():
    with torch.inference_mode():
        return bucket(POSITIONS.reshape(8, 5)), logarithm().reshape(8, 5).t().reshape(-1).long()


def without_gradients():
    with torch.no_grad():
        return bucket(POSITIONS)


def copied_into_integers():
    return torch.empty(40, dtype=torch.long).copy_(logarithm())


def added_to_others_first():
    logarithms = logarithm()
    return (logarithms + torch.randn(40)).long() + logarithms.neg().long()


THROWN_AWAY = {
    "T5": lambda: bucket(POSITIONS),
    "in place": in_place,
    "in place, by turns": changed_by_turns,
    "a view": seen_through_a_view,
    "another dtype": in_another_dtype,
    "no_grad": without_gradients,
    "copied into integers": copied_into_integers,
    "added to others": added_to_others_first,
}


def test_what_ends_in_integers_in_inference_mode_is_no_finding():
    trace = found(in_inference_mode)
    assert trace.findings.empty, trace.findings.to_string()
    assert trace.meta["discarded_ops"] == 2


@pytest.mark.parametrize("case", THROWN_AWAY)
def test_what_ends_in_integers_is_no_finding(case):
    trace = found(THROWN_AWAY[case])
    assert trace.findings.empty, trace.findings.to_string()
    assert trace.meta["discarded_ops"] == 1


def used_in_a_float_result():
    logarithms = logarithm()
    return logarithms.long() + logarithms.exp()


def hidden_from_a_float_result():
    """README's example, of lengths that need no gradient."""
    return torch.where(POSITIONS > 0, 1 / POSITIONS.float(), 0.0)


def read_as_a_number():
    logarithms = logarithm()
    return logarithms.long(), logarithms[0].item()


def summed():
    return logarithm().sum().long()


def compared():
    logarithms = logarithm()
    return logarithms.long(), logarithms < 0


def written_to_older_memory():
    return OLDER.copy_(logarithm()).long()


def changed_after_the_cast():
    logarithms = logarithm()
    logarithms.long()
    logarithms.mul_(2)


def added_to_each_other():
    logarithms, others = logarithm(), torch.zeros(40)
    others.add_(logarithms)
    logarithms.add_(others)


def never_used():
    logarithm().view(8, 5)


USED = {
    "in a float result": (used_in_a_float_result, "log"),
    "hidden by where()": (hidden_from_a_float_result, "reciprocal"),
    "read as a number": (read_as_a_number, "log"),
    "summed": (summed, "log"),
    "compared": (compared, "log"),
    "in older memory": (written_to_older_memory, "log"),
    "changed after the cast": (changed_after_the_cast, "log"),
    "added to each other": (added_to_each_other, "log"),
    "the step's result": (never_used, "log"),
}


@pytest.mark.parametrize("case", USED)
def test_what_is_used_stays_a_finding(case):
    step, op = USED[case]
    assert kinds(step) == [(op, "inf")]


def test_what_reaches_the_loss_stays_a_finding():
    weight = torch.ones(40, requires_grad=True)

    def step():
        logarithms = logarithm()
        logarithms.long()
        (weight * logarithms).sum().backward()

    assert kinds(step)[0] == ("log", "inf")


def test_what_an_op_that_torch_no_longer_knows_makes_of_it_stays_a_finding():
    def step():
        with _scoped_library("nbkit_gone", "DEF") as library:
            library.define("doubled(Tensor x) -> Tensor")
            library.impl("doubled", lambda x: x * 2, "CPU")
            torch.ops.nbkit_gone.doubled(logarithm()).long()

    assert kinds(step) == [("log", "inf")]


def test_what_needs_a_gradient_stays_a_finding():
    x = torch.zeros(3, requires_grad=True)
    assert kinds(lambda: x.log().long()) == [("log", "inf")]
    assert kinds(lambda: (torch.zeros(3).log() * x).long()) == [("log", "inf"), ("mul", "nan")]


def test_what_the_user_keeps_stays_a_finding():
    kept = []

    def step():
        kept.append(logarithm())
        kept[0].long()

    assert kinds(step) == [("log", "inf")]
    assert kinds(lambda: kept.append(torch.zeros(3).log().data) or kept[1].long()) == [("log", "inf")]


def test_a_part_of_it_that_the_user_keeps_is_enough():
    kept = []

    def step():
        logarithms = logarithm()
        kept.append(logarithms[3:])
        logarithms.long()

    assert kinds(step) == [("log", "inf")]


def test_nan_and_what_becomes_nan_stay_findings():
    assert kinds(lambda: (-torch.ones(3)).sqrt().long()) == [("sqrt", "nan")]
    assert kinds(lambda: (torch.zeros(3).log() * 0).long()) == [("log", "inf"), ("mul", "nan")]


def test_an_overflow_stays_a_finding():
    assert kinds(lambda: torch.full((2,), 1e5).half().long()) == [("_to_copy", "overflow")]


def test_a_gradient_that_is_cast_stays_a_finding():
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return (grad / 0).to(torch.int8).float()

    x = torch.ones(3, requires_grad=True)
    assert kinds(lambda: Rounded.apply(x).sum().backward()) == [("div", "inf")]


def test_a_recording_that_stops_cannot_know_what_becomes_of_it():
    with pytest.raises(nbkit.NonFiniteError, match=r"^aten.log.default: 1 of 40"), nbkit.opcheck(stop=True) as trace:
        bucket(POSITIONS)
    assert trace.findings["op"].tolist() == ["aten.log.default"]


def test_findings_beside_it_stay_in_order():
    def step():
        torch.zeros(2).log()
        bucket(POSITIONS)
        (-torch.ones(2)).sqrt()

    assert kinds(step) == [("log", "inf"), ("sqrt", "nan")]


def test_steps_of_t5_have_no_finding():
    import transformers  # slow

    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=4, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    model = transformers.T5ForConditionalGeneration(config)
    optimizer, ids = torch.optim.AdamW(model.parameters()), torch.randint(1, 50, (2, 20))
    with nbkit.opcheck() as trace:
        for _ in range(2):
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
    assert trace.findings.empty, trace.findings.to_string()
    assert trace.meta["discarded_ops"] == 4  # in the encoder and the decoder


def test_a_module_that_keeps_it_as_a_buffer_keeps_the_finding():
    class Positions(nn.Module):
        def forward(self):
            self.logarithms = logarithm()
            return self.logarithms.long()

    model = Positions()
    assert kinds(model) == [("log", "inf")]
