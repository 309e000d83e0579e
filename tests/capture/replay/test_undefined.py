from math import nan

import torch

from nbkit.capture.replay.undefined import settled

ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
# A row that is NaN and one that is not, and the logsumexp of each.
LOST = [torch.tensor([[nan, nan], [1.0, 2.0]]), torch.tensor([0.0, 3.0])]
KEPT = [torch.tensor([[nan, nan], [1.0, 2.0]]), torch.tensor([nan, nan])]


def test_what_stands_beside_a_row_that_is_nan_in_both_is_that_of_the_other():
    attention, beside = settled(ATTENTION, LOST, KEPT)
    assert attention is LOST[0]
    assert beside.isnan().tolist() == [True, False]
    assert LOST[1].tolist() == [0.0, 3.0]


def test_other_ops_and_other_shapes_stay_as_they_are():
    assert settled("mm", LOST, KEPT) is LOST
    assert settled(ATTENTION, LOST, [KEPT[0][:1], KEPT[1][:1]]) is LOST
