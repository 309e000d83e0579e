"""Comparing and checking neither change nor break the step: docs/development/known_defects.md has the numbers."""

import os

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import nbkit
from tests.capture.diff.planted import compared, wrong
from tests.capture.models import bits

VERBS = {"opdiff": nbkit.opdiff, "opcheck": nbkit.opcheck}
MANY_RESULTS = {
    "chunk": lambda x: x.chunk(3, dim=-1),
    "split": lambda x: x.split([1, 2, 3], dim=1),
    "unbind": lambda x: x.unbind(),
    "svd": lambda x: torch.linalg.svd(x, full_matrices=False),
    "var_mean": lambda x: torch.var_mean(x, dim=0),
}
each_verb = pytest.mark.parametrize("verb", VERBS)


def left(step, verb=None):
    """Bits of what a step returns, bare or under a verb, and of the generator."""
    torch.manual_seed(5)
    if verb is None:
        out = step()
    else:
        with VERBS[verb]() as trace:
            out = step()
        assert trace.complete
    return bits([*out, torch.get_rng_state()])


@each_verb
@pytest.mark.parametrize("op", MANY_RESULTS)
def test_ops_of_many_results_have_their_gradients(op, verb):
    """B1: all results take part in the backward pass; gradients come as a sequence."""
    given = torch.randn(4, 6, generator=torch.Generator().manual_seed(2))

    def step():
        x = given.clone().requires_grad_()
        sum(one.pow(2).sum() * weight for weight, one in enumerate(MANY_RESULTS[op](x), 1)).backward()
        return [x.grad]

    assert left(step, verb) == left(step)
    assert wrong(compared(step)).empty


@each_verb
def test_two_dropouts_in_a_row_draw_what_they_draw_bare(verb):
    """B7: random ops are not run again, and the generator is where it would be."""
    x = torch.ones(64)
    step = lambda: [F.dropout(F.dropout(x, 0.5), 0.3), torch.rand(3)]  # noqa: E731
    assert left(step, verb) == left(step)


@each_verb
def test_an_in_place_op_on_the_cpu_happens_once(verb):
    """B8, and B2 as far as it concerns comparing: x.mul_(2) from 1 gives 2; AdamW computes what it computes bare."""

    def step():
        x, weight = torch.ones(3), nn.Parameter(torch.ones(3))
        optimizer = torch.optim.AdamW([weight], lr=0.2)
        for _ in range(3):
            optimizer.zero_grad()
            weight.pow(2).sum().backward()
            optimizer.step()
        x.mul_(2)[0] = 5
        return [x, weight]

    assert left(step, verb) == left(step)
    assert step()[0].tolist() == [5, 2, 2]


@each_verb
@pytest.mark.parametrize("way", [True, False])
def test_checkpoints_see_none_of_the_reference(way, verb):
    """B9: the number of saved tensors is that of the bare step."""
    torch.manual_seed(1)
    model, given = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Dropout(0.5)), torch.randn(3, 4)

    def step():
        x = given.clone().requires_grad_()
        model.zero_grad()
        checkpoint(model, x, use_reentrant=way).sum().backward()
        return [x.grad, model[0].weight.grad]

    assert left(step, verb) == left(step)


@each_verb
def test_methods_of_tensors_keep_their_self(verb):
    """B15: nothing takes the place of torch.Tensor.lerp."""
    x, before = torch.zeros(2), torch.Tensor.lerp
    step = lambda: [x.lerp(torch.ones(2), 0.5), torch.Tensor.lerp(x, torch.ones(2), 0.25)]  # noqa: E731
    assert left(step, verb) == left(step)
    assert torch.Tensor.lerp is before


@each_verb
def test_an_op_that_raised_once_runs_later(verb):
    """B16: no exception is kept for later calls."""
    x, y = torch.ones(2, 3), torch.ones(3, 2)

    def step():
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            x @ x
        return [x @ y]

    assert left(step, verb) == left(step)
    with nbkit.opdiff() as trace:
        step()
    assert trace.diffs[["op", "status"]].to_numpy().tolist() == [["aten.mm.default", "ok"]]


@each_verb
def test_of_two_that_overlap_each_takes_away_its_own(verb):
    """B18: the one that began first ends first; the other goes on."""
    first, second = VERBS[verb](), VERBS[verb]()
    a, b = first.__enter__(), second.__enter__()
    torch.zeros(2).log()
    first.__exit__(None, None, None)
    torch.zeros(2).sqrt()
    second.__exit__(None, None, None)
    assert ["aten.sqrt.default" in set(one.ops["op"]) for one in (a, b)] == [False, True]
    frame = b.diffs if verb == "opdiff" else b.findings
    assert "aten.log.default" in set(frame["op"])
    assert torch._C._len_torch_dispatch_stack() == 0


@each_verb
def test_nothing_is_written_to_the_environment_or_the_folder(verb, tmp_path, monkeypatch, capfd):
    """B48, B49, B55 and B61: options are arguments, results are frames, a CPU is enough, nothing is printed."""
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    with VERBS[verb]():
        torch.zeros(2).log()
    assert dict(os.environ) == before
    assert [*tmp_path.iterdir()] == []
    assert capfd.readouterr() == ("", "")


@each_verb
def test_cases_of_out_and_of_concatenation(verb):
    """exp(x, out=x) holds exp; leaves stay leaves; cat((a, a, a)) is handled."""

    def step():
        x, leaf = torch.ones(2), torch.ones(2, dtype=torch.float16, requires_grad=True)
        torch.exp(x, out=x)
        torch.cat((leaf, leaf, leaf)).sum().backward()
        assert leaf.is_leaf and leaf.grad.dtype == torch.float16
        return [x, leaf.grad]

    assert left(step, verb) == left(step)
    assert step()[0].tolist() == torch.ones(2).exp().tolist()
    assert wrong(compared(step)).empty
