"""Models that see what they are to predict, labels that resizing blends: what is named, and right steps."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.dataflow.steps import found

B, T, D, WORDS = 3, 7, 8, 11
IDS, SOURCE = torch.randint(0, WORDS, (B, T + 1)), torch.randn(B, T, D)
TABLE, HEAD, QKV = nn.Embedding(WORDS, D), nn.Linear(D, WORDS), nn.Linear(D, 3 * D)
LAYER = nn.TransformerEncoderLayer(D, 2, 16, batch_first=True)
CROSS = nn.MultiheadAttention(D, 2, batch_first=True)
GRU = nn.GRU(D, D, batch_first=True)
CAUSAL = torch.full((T, T), float("-inf")).triu(1)  # made before the step


def train(mix, of=IDS):
    """A language model; the slices are made here, in the step."""
    scores = HEAD(mix(TABLE(of[:, :-1])))
    F.cross_entropy(scores.flatten(0, 1), of[:, 1:].flatten()).backward()


def by_hand(change=lambda scores: scores, weigh=lambda weights: weights):
    def mix(x):
        q, k, v = QKV(x).chunk(3, -1)
        return x + weigh(F.dropout(change(q @ k.mT / D**0.5).softmax(-1), 0.1)) @ v

    return mix


def fused(**options):
    def mix(x):
        q, k, v = (one[:, None] for one in QKV(x).chunk(3, -1))
        return x + F.scaled_dot_product_attention(q, k, v, **options)[:, 0]

    return mix


UNMASKED = {
    "a layer": lambda: train(LAYER),
    "fused": lambda: train(fused()),
    "by hand": lambda: train(by_hand()),
    "beside another sequence": lambda: train(lambda x: LAYER(x + CROSS(x, SOURCE, SOURCE)[0])),
}


@pytest.mark.parametrize("case", UNMASKED)
def test_a_model_that_sees_the_next_token_is_named(case):
    [finding] = found(UNMASKED[case])
    assert (finding.rule, finding.severity) == ("unmasked_targets", "warning")
    assert "predicts tokens 1 to 7 of a sequence from its tokens 0 to 6" in finding.message
    assert "lets each position see all 7, with no causal mask" in finding.message
    assert finding.source is not None


def masked_tokens():
    """Predicts what was replaced."""
    ids = IDS[:, :-1].masked_fill(torch.rand(B, T) < 0.2, 0)
    F.cross_entropy(HEAD(LAYER(TABLE(ids))).flatten(0, 1), IDS[:, 1:].flatten()).backward()


def of_one_text():
    """Predicts the tokens of one sequence from another."""
    F.cross_entropy(HEAD(LAYER(TABLE(OTHER[:, :-1]))).flatten(0, 1), IDS[:, 1:].flatten()).backward()


def the_same_tokens():
    F.cross_entropy(HEAD(LAYER(TABLE(IDS[:, :-1]))).flatten(0, 1), IDS[:, :-1].flatten()).backward()


OTHER = IDS.flip(0)
MASKED = {
    "causal": lambda: train(fused(is_causal=True)),
    "a mask that was there": lambda: train(fused(attn_mask=CAUSAL)),
    "a layer with a mask": lambda: train(lambda x: LAYER(x, src_mask=CAUSAL)),
    "a mask that is added": lambda: train(by_hand(lambda scores: scores + CAUSAL)),
    "a mask that fills": lambda: train(by_hand(lambda scores: scores.masked_fill(CAUSAL < 0, -1e9))),
    "a mask behind the softmax": lambda: train(by_hand(weigh=lambda weights: weights * CAUSAL.exp())),
    "no attention": lambda: train(lambda x: x),
    "recurrent": lambda: train(lambda x: GRU(x)[0]),
    "attention to another sequence": lambda: train(lambda x: x + CROSS(x, SOURCE, SOURCE)[0]),
    "one layer with a mask": lambda: train(lambda x: by_hand(lambda scores: scores + CAUSAL)(LAYER(x))),
    "masked tokens": masked_tokens,
    "another sequence": of_one_text,
    "the same tokens": the_same_tokens,
    "the batch": lambda: train(lambda x: LAYER(x.mT.mT), of=IDS[:, :4]),
}


@pytest.mark.parametrize("case", MASKED)
def test_a_model_that_does_not_is_not_named(case):
    assert found(MASKED[case]) == []


WIDE = torch.randint(0, WORDS, (B, T + 4))


def shifting(labels, scores=lambda x: x, of=WIDE, more=None):
    """A causal model, and a loss that shifts as it says."""
    hidden = fused(is_causal=True)(TABLE(of[:, : T + 3]))
    loss = F.cross_entropy(scores(HEAD(hidden)).flatten(0, 1), labels(of).flatten(), ignore_index=-100)
    (loss if more is None else loss + more(hidden, of)).backward()


def padded(labels):
    """As transformers shifts them."""
    return F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()


def next_token(hidden, of):
    return F.cross_entropy(HEAD(hidden).flatten(0, 1), of[:, 1:].flatten())


TWICE = {
    "cut twice": lambda: shifting(lambda of: of[:, 1:][:, 1:], lambda scores: scores[:, :-1]),
    "padded": lambda: shifting(lambda of: padded(of[:, 1:])),
    "in another form": lambda: shifting(lambda of: of[:, 1:].contiguous()[..., 1:].clone(), lambda x: x[:, :-1]),
}


@pytest.mark.parametrize("case", TWICE)
def test_targets_that_are_shifted_twice_are_named(case):
    [finding] = found(TWICE[case])
    assert (finding.rule, finding.severity) == ("shifted_twice", "warning")
    assert "the model learns to predict the token after the next" in finding.message


ONCE = {
    "by the script": lambda: shifting(lambda of: of[:, 1:]),
    "by the loss": lambda: shifting(lambda of: of[:, :-1][:, 1:], lambda scores: scores[:, :-1]),
    "padded": lambda: shifting(lambda of: padded(of[:, :-1])),
    "beside the next": lambda: shifting(lambda of: of[:, 1:][:, 1:], lambda x: x[:, :-1], more=next_token),
    "another text": lambda: shifting(lambda of: OTHER[:, 1:][:, 1:].repeat(1, 2)[:, : T + 3]),
}


@pytest.mark.parametrize("case", ONCE)
def test_targets_that_are_shifted_once_are_right(case):
    assert found(ONCE[case]) == []


CONV, IMAGES = nn.Conv2d(3, 5, 1), torch.rand(2, 3, 20, 20)
MASKS = torch.randint(0, 5, (2, 50, 50))


def segment(labels, net=CONV):
    F.cross_entropy(net(IMAGES), labels).backward()


def resized(mode, change=lambda masks: masks, masks=MASKS, **options):
    return change(F.interpolate(masks[:, None].float(), size=(20, 20), mode=mode, **options))[:, 0].long()


BLENDED = {
    "cast": lambda: segment(resized("bilinear")),
    "rounded": lambda: segment(resized("bicubic", change=lambda masks: masks.round().clamp(0, 4))),
    "smoothed": lambda: segment(resized("bilinear", antialias=True)),
    "a half": lambda: segment(resized("bilinear", masks=MASKS[:, :40, :40])),
}


@pytest.mark.parametrize("case", BLENDED)
def test_labels_that_are_blended_are_a_hint(case):
    [finding] = found(BLENDED[case])
    assert (finding.rule, finding.severity) == ("blended_labels", "hint")
    assert "blends classes, so that between two of the 5 lie others" in finding.message
    assert "resizes from [2, 1, " in finding.message and "to [2, 1, 20, 20]" in finding.message


UNBLENDED = {
    "nearest": lambda: segment(resized("nearest")),
    "two classes": lambda: segment(resized("bilinear").clamp(max=1), nn.Conv2d(3, 2, 1)),
    "a threshold": lambda: segment(resized("bilinear", change=lambda masks: masks > 0.5)),
    "the largest of one-hot": lambda: segment(
        F.interpolate(F.one_hot(MASKS, 5).permute(0, 3, 1, 2).float(), size=(20, 20), mode="bilinear").argmax(1)
    ),
    "the same size": lambda: segment(resized("bilinear", masks=MASKS[:, :20, :20])),
    "images": lambda: segment(MASKS[:, :20, :20], lambda x: CONV(F.interpolate(x, size=(20, 20), mode="bilinear"))),
    "scores": lambda: segment(MASKS, lambda x: F.interpolate(CONV(x), size=(50, 50), mode="bilinear")),
}


@pytest.mark.parametrize("case", UNBLENDED)
def test_labels_that_are_not_are_right(case):
    assert found(UNBLENDED[case]) == []
