"""Targets that never count in a loss, and ignored ones that a mean counts: what is named, and right batches."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

WORDS, END, PADDING = 32, 2, 0


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(WORDS, 8), nn.Linear(8, WORDS)

    def forward(self, ids):
        return self.head(self.table(ids))


def found(ids, labels, *, is_padded=False, **options):
    model = Speaker()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbkit.opaudit() as trace:
        scores = model(ids)
        if is_padded:  # as transformers shifts them
            scores, labels = scores.flatten(0, 1), F.pad(labels, (0, 1), value=-100)[:, 1:].flatten()
        else:
            scores, labels = scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        loss = F.cross_entropy(scores, labels, **options)
        loss.mean().backward()
        optimizer.step()
    rows = trace.findings[trace.findings["rule"].isin(["uncounted_token", "ignored_in_mean"])]
    return [*rows.itertuples()]


def texts(*ends):
    """Ids of three texts, each with these tokens from a place on."""
    ids = 3 + torch.arange(27).reshape(3, 9) % (WORDS - 3)
    for row, (begin, *tokens) in enumerate(ends):
        ids[row, begin:] = torch.tensor([*tokens, *[tokens[-1]] * 9])[: 9 - begin]
    return ids


def hidden(ids, token):
    return ids.masked_fill(ids == token, -100)


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_separator_that_never_counts_is_a_hint(is_padded, smoothing):
    ids = texts()
    ids[0, 4] = ids[1, 6] = END
    (finding,) = found(ids, hidden(ids, END), is_padded=is_padded, label_smoothing=smoothing)
    assert (finding.rule, finding.severity) == ("uncounted_token", "hint")
    assert finding.message == (
        f"No target of token 2 counts in the loss: all {5 if is_padded else 2} are ignored, and 2 of them stand "
        "between tokens that count, so that the model never learns to give it"
    )


def test_an_end_that_is_the_padding_as_well_is_a_hint():
    ids = texts((5, END), (8, END), (7, END))
    (finding,) = found(ids, hidden(ids, END))
    assert "all 7 are ignored, and each row of the batch ends with it" in finding.message


@pytest.mark.parametrize(
    ("ids", "token"),
    [
        (texts((5, END, PADDING), (8, END), (7, END, PADDING)), PADDING),
        (texts((6, PADDING), (9, PADDING), (7, PADDING)), PADDING),
        (texts((5, END, PADDING), (6, END, PADDING), (7, END, PADDING)), PADDING),
        (texts((9, PADDING)), PADDING),
    ],
    ids=["an end and padding", "no ends", "all padded", "none ignored"],
)
def test_padding_is_right(ids, token):
    assert found(ids, hidden(ids, token)) == []


def test_padding_at_the_begin_and_prompts_are_right():
    ids = texts()
    ids[0, :5] = ids[2, :2] = PADDING
    assert found(ids, hidden(ids, PADDING)) == []
    prompts = texts()
    labels = prompts.clone()
    labels[:, :4] = -100
    assert found(prompts, labels) == []


def test_what_hooks_keep_for_the_backward_pass_is_brought_back_by_it_alone():
    ids, brought_back = texts((5, END), (8, END), (7, END)), []

    def unpack(kept):
        brought_back.append(kept)
        return kept

    with torch.autograd.graph.saved_tensors_hooks(lambda kept: kept, unpack):
        scores = Speaker()(ids)[:, :-1].flatten(0, 1)
        F.cross_entropy(scores, hidden(ids, END)[:, 1:].flatten()).backward()
        bare = len(brought_back)
        assert found(ids, hidden(ids, END)) == []
    assert len(brought_back) == 2 * bare > 0


def test_a_mean_of_single_losses_counts_what_is_ignored():
    ids = texts((7, PADDING), (9, PADDING), (9, PADDING))
    (finding,) = found(ids, hidden(ids, PADDING), reduction="none")
    assert (finding.rule, finding.severity) == ("ignored_in_mean", "hint")
    assert finding.message == (
        "mean counts 2 of 24 targets that the loss ignores, whose loss is 0: the more of them, the smaller the loss"
    )
    assert found(texts(), texts(), reduction="none") == []
