"""Which positions of a result depend on later positions of the input."""

import pytest
import torch
from torch import nn

import nbkit
from nbkit.errors import OptionError
from sample_models.llama import LLAMA_SMALL, Llama

IDS = torch.randint(0, 9, (2, 6))


class Mixer(nn.Module):
    """Adds to each position what stands `offset` positions before it; a negative offset looks ahead."""

    def __init__(self, offset):
        super().__init__()
        self.offset, self.embedding, self.dropout = offset, nn.Embedding(9, 4), nn.Dropout(0.5)

    def forward(self, ids):
        x = self.dropout(self.embedding(ids))
        return x + x.roll(self.offset, 1) * (torch.arange(ids.shape[1]) >= self.offset)[:, None]


def test_a_causal_model_has_none():
    assert nbkit.leaks(Llama(LLAMA_SMALL), IDS).empty
    assert nbkit.leaks(Mixer(2), IDS).empty


def test_a_model_that_looks_ahead_is_told_by_its_positions():
    found = nbkit.leaks(Mixer(-1), IDS)
    pairs = list(zip(found["input_position"], found["output_position"], strict=True))
    assert pairs == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    assert (found["change"] > 0.01).all()


def test_a_result_that_is_no_number_whatever_comes_in_depends_on_nothing():
    """As a softmax over nothing makes; where it is a number for some inputs, it depends on them."""
    is_first = torch.arange(6)[:, None] == 0
    blind = Mixer(1)
    assert nbkit.leaks(lambda ids: blind(ids).masked_fill(is_first, float("nan")), IDS).empty
    found = nbkit.leaks(lambda ids: blind(ids).masked_fill((ids != IDS)[:, 1:2, None] & is_first, float("nan")), IDS)
    assert found[["input_position", "output_position", "change"]].to_numpy().tolist() == [[1, 0, float("inf")]]


def test_mode_random_state_and_gradients_are_as_before():
    model = Mixer(1)
    model.dropout.eval()
    before = torch.random.get_rng_state()
    nbkit.leaks(model, IDS)
    assert (model.training, model.dropout.training) == (True, False)
    assert torch.equal(before, torch.random.get_rng_state())
    assert model.embedding.weight.grad is None


def test_values_and_keyword_arguments_can_be_probed():
    lookahead = nn.Conv1d(3, 3, 3, padding=1)
    found = nbkit.leaks(lambda x: lookahead(x), torch.randn(2, 3, 5), dim=2)
    assert set(found["input_position"] - found["output_position"]) == {1}
    model = Mixer(1)
    batch = {"mask": None, "input_ids": IDS}
    assert nbkit.leaks(lambda input_ids, mask: {"logits": model(input_ids)}, batch).empty


def test_one_token_everywhere_is_changed_too():
    assert len(nbkit.leaks(Mixer(-1), torch.full((1, 3), 7))) == 2


@pytest.mark.parametrize(
    ("model", "batch", "sentence"),
    [
        (Mixer(1), {"ids": [1, 2]}, "The batch is a dict without a tensor"),
        (Mixer(1), IDS[0], r"The batch has shape \[6\], which has no dimension 1"),
        (lambda ids: ids.float().mean(1), IDS, "is not that of positions"),
        (lambda ids: "text", IDS, "The result is a str without a tensor"),
    ],
    ids=["no tensor", "no positions", "another result", "no result"],
)
def test_what_cannot_be_probed_is_said_in_a_sentence(model, batch, sentence):
    with pytest.raises(OptionError, match=sentence):
        nbkit.leaks(model, batch)
