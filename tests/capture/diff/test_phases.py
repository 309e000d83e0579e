"""Eigenvectors and singular vectors are right whatever their sign or phase, and wrong otherwise."""

import pytest
import torch
import torch.nn.functional as F

from tests.capture.diff.planted import compared, with_fault, wrong

TALL = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(1))
SQUARE = TALL[:, :4]
STEPS = {
    "svd": (lambda: torch.linalg.svd(TALL), "aten._linalg_svd.default", (0, 2)),
    "eigh": (lambda: torch.linalg.eigh(SQUARE + SQUARE.mT), "aten._linalg_eigh.default", (1,)),
    "eig": (lambda: torch.linalg.eig(SQUARE), "aten.linalg_eig.default", (1,)),
}


def times(factor, places):
    """What multiplies the first vector of each of these results."""

    def change(func, args, out):
        for place in places:
            vectors = out[place][..., 0, :] if place == 2 else out[place][..., 0]
            vectors.mul_(factor if place != 2 else factor.conjugate())
        return out

    return change


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_clean_decompositions_are_right(name, dtype, monkeypatch):
    monkeypatch.setitem(globals(), "TALL", TALL.to(dtype))
    monkeypatch.setitem(globals(), "SQUARE", SQUARE.to(dtype))
    step, op, _ = STEPS[name]
    trace = compared(step)
    assert op in set(trace.frames["diffs"]["op"])
    assert wrong(trace).empty


@pytest.mark.parametrize("name", STEPS)
def test_another_sign_is_right(name):
    step, op, places = STEPS[name]
    assert wrong(with_fault(step, op, times(-1.0, places))).empty


def test_another_phase_is_right_for_complex_vectors():
    step, op, places = STEPS["eig"]
    assert wrong(with_fault(step, op, times(complex(0.6, 0.8), places))).empty


@pytest.mark.parametrize("name", STEPS)
def test_another_length_is_wrong(name):
    step, op, places = STEPS[name]
    assert wrong(with_fault(step, op, times(1.001, places[:1])))["op"].tolist() == [op]


def test_the_sign_of_one_of_a_pair_of_singular_vectors_is_wrong():
    step, op, _ = STEPS["svd"]
    assert wrong(with_fault(step, op, times(-1.0, (0,))))["op"].tolist() == [op]


def test_results_that_are_notes_for_the_backward_op_are_not_values():
    weight = torch.randn(10, 3, requires_grad=True)
    log_probs = torch.randn(20, 2, 5, requires_grad=True)

    def step():
        bags = F.embedding_bag(torch.tensor([1, 2, 3, 4]), weight, torch.tensor([0, 2]))
        lost = F.ctc_loss(log_probs.log_softmax(2), torch.tensor([[1, 2], [3, 3]]), [20, 12], [2, 2])
        (bags.sum() + lost).backward()

    trace = compared(step)
    assert {"aten._embedding_bag.default", "aten._ctc_loss.default"} <= set(trace.frames["diffs"]["op"])
    assert wrong(trace).empty
