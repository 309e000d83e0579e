"""The reason of a gradient that is exactly zero: a mask of attention, a factor that begins at zero; none is made up."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import nbkit

IDS = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0], [7, 0, 0, 0]])  # 0 is padding


class Encoder(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8, 8, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(8, 2, 8, dropout, batch_first=True)

    def forward(self, hides: Tensor) -> Tensor:
        return self.layer(self.embedding(IDS), src_key_padding_mask=hides)


class LowRank(nn.Module):
    """Adds a product of two matrices, of which the second is 0 at first; `past` lets the first reach the loss alone."""

    def __init__(self, past: float = 0.0) -> None:
        super().__init__()
        self.base, self.past = nn.Linear(4, 4).requires_grad_(False), past
        self.down, self.up = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.down(x)
        out = self.base(x) + self.up(inner)
        return out + self.past * inner.sum() if self.past else out


def zeros(model, *inputs, steps=1):
    torch.manual_seed(0)
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.1)
    with nbkit.opaudit() as trace:
        for _ in range(steps):
            optimizer.zero_grad()
            F.mse_loss(out := model(*inputs), torch.ones_like(out)).backward()
            optimizer.step()
    return [(one.message, one.advice) for one in trace.findings.itertuples() if one.rule == "zero_gradient"]


# With dropout torch computes attention op by op on the CPU.
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_mask_that_hides_all_tokens_is_the_reason(dropout):
    [(message, advice)] = zeros(Encoder(dropout), IDS != 0)
    assert message.endswith(
        "layer.self_attn.out_proj.weight are exactly 0 in every element: the attention of layer.self_attn gives 0 at "
        "every position, as its mask hides all of them, or all but such as are 0"
    )
    assert "True hides in masked_fill() and in torch.nn.MultiheadAttention" in advice
    assert zeros(Encoder(dropout), IDS == 0) == []


def test_a_mask_is_not_the_reason_where_nothing_behind_attention_has_a_gradient():
    model = Encoder(0.0)
    with torch.no_grad():  # a ReLU that is never active, behind attention that works
        model.layer.linear1.bias.fill_(-100)
    [(message, _)] = zeros(model, IDS == 0)
    assert "linear1" in message and "mask" not in message


def test_a_factor_that_begins_at_zero_is_the_reason_in_the_first_step():
    [(message, advice)] = zeros(LowRank(), torch.randn(3, 4))
    reason = ": up.weight, by which what it gives is multiplied, begins at 0"
    assert message == f"The gradient of down.weight is exactly 0 in every element{reason}"
    assert advice.startswith("Nothing, if that is meant (LoRA")
    assert zeros(LowRank(), torch.randn(3, 4), steps=2) == []


def test_a_factor_is_not_the_reason_where_the_loss_is_reached_past_it():
    [(message, _)] = zeros(LowRank(past=1e-60), torch.randn(3, 4))  # which float32 rounds to 0
    assert message == "The gradient of down.weight is exactly 0 in every element"


def test_softmax_of_a_row_that_is_hidden_as_a_whole_is_told_to_be_the_masks_fault():
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(3, 4, 8)
    with nbkit.opcheck() as trace:
        model(x, x, x, key_padding_mask=IDS != 0)[0]
    first = trace.findings.iloc[0]
    assert (first["rule"], first["op"]) == ("nan", "aten._softmax.default")
    assert first["advice"].startswith("A row of the scores is hidden as a whole: ")
    with nbkit.opcheck() as trace:
        torch.tensor([1.0, torch.inf]).softmax(0)
    assert "hidden" not in trace.findings.iloc[0]["advice"]


def test_two_zeros_that_are_multiplied_are_the_reason_and_never_get_a_gradient():
    model = LowRank()
    nn.init.zeros_(model.down.weight)
    [(message, advice)] = zeros(model, torch.randn(3, 4), steps=3)
    assert message == (
        "The gradients of down, up are exactly 0 in every element at all 3 steps: they are zeros "
        "themselves, and what each gives is multiplied by another of them"
    )
    assert advice.startswith("Begin with random numbers in one of them")


class BothWays(nn.Module):
    """Classifies by what an LSTM of both directions gives: at its last position, at both ends, or at all."""

    def __init__(self, read: str) -> None:
        super().__init__()
        self.lstm, self.read = nn.LSTM(4, 3, bidirectional=True, batch_first=True), read
        self.head = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        out, (last, _) = self.lstm(x)
        if self.read == "ends":
            return self.head(torch.cat([last[-2], last[-1]], -1))
        return self.head(out[:, -1] if self.read == "last" else out.mean(1))


def test_a_reverse_direction_of_which_the_last_position_is_read_has_read_one():
    [(message, advice)] = zeros(BothWays("last"), torch.randn(3, 5, 4))
    assert message.startswith("The gradient of lstm.weight_hh_l0_reverse is exactly 0")
    assert message.endswith(
        ": what the loss reads of the reverse direction has read one position, and no state before it"
    )
    assert "output[:, 0] of the reverse one" in advice
    for read in ("ends", "all"):
        assert zeros(BothWays(read), torch.randn(3, 5, 4)) == []
