"""What holds for each sample model as a language model: causal, its loss, what it learns."""

import pytest
import torch
from torch.testing import assert_close

from tests.sample_models.models import TINY, draw_ids, tiny

pytestmark = pytest.mark.parametrize("name", TINY)


def test_logits_do_not_depend_on_later_ids(name):
    model, ids = tiny(name), draw_ids(12)
    changed = ids.clone()
    changed[:, 7:] = (ids[:, 7:] + 1) % TINY[name][1].vocab_size
    before, after = model(ids), model(changed)
    assert_close(before[:, :7], after[:, :7], rtol=0, atol=1e-6)
    assert not torch.allclose(before[:, 7:], after[:, 7:], atol=1e-3)


def test_loss_is_the_cross_entropy_of_the_logits(name):
    model, ids, targets = tiny(name), draw_ids(6), draw_ids(6).flip(1)
    likelihoods = model(ids).log_softmax(-1).gather(-1, targets[..., None])
    assert_close(model(ids, targets), -likelihoods.mean())


def test_every_parameter_gets_a_gradient_and_the_model_learns(name):
    torch.manual_seed(0)
    make, config = TINY[name]
    model, ids = make(config), draw_ids(17)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        if not losses:
            assert [name for name, parameter in model.named_parameters() if not parameter.grad.any()] == []
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_bfloat16_stays_close_to_float32(name):
    model, ids = tiny(name), draw_ids(16)
    expected = model(ids)
    actual = model.bfloat16()(ids)
    assert actual.dtype == torch.bfloat16
    assert (actual - expected).abs().mean() < 0.05 * expected.abs().mean()
