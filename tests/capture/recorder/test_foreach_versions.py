"""Autograd notices a foreach write to a saved tensor whatever watches: version counters are those of the bare step."""

from contextlib import nullcontext

import pytest
import torch

import nbkit

WATCHED = {"optrace": nbkit.optrace, "opdiff": nbkit.opdiff, "opcheck": nbkit.opcheck}
OPTIMIZERS = {
    "AdamW": lambda w: torch.optim.AdamW([w], foreach=True),
    "SGD": lambda w: torch.optim.SGD([w], foreach=True, momentum=0.9),
    "Adagrad": lambda w: torch.optim.Adagrad([w], foreach=True),
}


def versions(watch, make):
    w = torch.ones(3, requires_grad=True)
    optimizer = make(w)
    with watch:
        for _ in range(2):
            (w * w).sum().backward()
            optimizer.step()
    return [w._version, *(value._version for value in optimizer.state[w].values())]


@pytest.mark.parametrize("verb", WATCHED)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_counters_are_those_of_the_bare_step(verb, optimizer):
    bare = versions(nullcontext(), OPTIMIZERS[optimizer])
    assert bare[0] > 0
    assert versions(WATCHED[verb](), OPTIMIZERS[optimizer]) == bare


@pytest.mark.parametrize("recorder", ["python", "native"])
def test_both_recorders_count_every_kind_of_list(recorder, monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", recorder)

    def written():
        x, y = torch.ones(3, 3), torch.ones(3, 3)
        torch._foreach_add_([x, x[0], y], 1.0)  # a view and its base have one counter
        torch._foreach_copy_([x], [y])
        torch._foreach_add([y], 1.0)
        with torch.inference_mode():
            torch._foreach_add_([torch.ones(2)], 1.0)
        return x._version, y._version, x.tolist()

    bare = written()
    with nbkit.optrace():
        assert written() == bare
    assert bare[:2] == (3, 1)


@pytest.mark.parametrize("verb", WATCHED)
def test_a_step_between_forward_and_backward_raises_as_it_does_bare(verb):
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1, foreach=True)
    w.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"), WATCHED[verb]():
        loss = (w * w).sum()
        optimizer.step()
        loss.backward()
