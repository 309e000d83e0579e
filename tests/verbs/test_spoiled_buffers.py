"""opalign of a model whose buffers a cast has spoiled: rotary frequencies in bfloat16."""

import copy

import pytest
import torch
from torch import Tensor, nn

import nbkit
from nbkit.trace.trace import Trace


class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(16, 16)
        self.register_buffer("inv_freq", 100.0 ** -(torch.arange(8) / 8))

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        angles = positions[:, None].float() * self.inv_freq.float()
        angles = torch.cat([angles, angles], -1)
        first, second = self.linear(x).chunk(2, -1)
        turned = torch.cat([-second, first], -1)
        return torch.cat([first, second], -1) * angles.cos().to(x.dtype) + turned * angles.sin().to(x.dtype)


def found(positions: int, *, with_buffer: tuple[bool, bool], left: torch.dtype = torch.bfloat16) -> Trace:
    """Returns the alignment of a model with one in bfloat16; `with_buffer` says whose frequencies are cast, too."""
    sides, inputs = [], []
    for is_cast, dtype in zip(with_buffer, (left, torch.bfloat16), strict=True):
        side = Rotary()
        (side if is_cast else side.linear).to(dtype)
        sides.append(side)
        inputs.append((torch.linspace(-1, 1, positions * 16).reshape(positions, 16).to(dtype), torch.arange(positions)))
    return nbkit.opalign(*sides, inputs=inputs[0], right_inputs=inputs[1])


@pytest.mark.parametrize(("with_buffer", "side"), [((False, True), "right"), ((True, False), "left")])
def test_frequencies_that_a_cast_has_rounded_are_named(with_buffer, side):
    trace = found(512, with_buffer=with_buffer)
    first, rows = trace.meta["first_divergence"], trace.frames["alignment"].set_index("right_name")
    assert rows.loc["cos", "error_class"] == "propagated"
    assert first["message"].startswith(f"the buffer inv_freq is rounded to bfloat16 on the {side} side")
    assert first["message"].endswith("keep it in float32") and first["kind"] is None


def test_they_are_named_beside_a_model_in_float32_too():
    trace = found(512, with_buffer=(False, True), left=torch.float32)
    assert trace.meta["first_divergence"]["left"]["name"] == "inv_freq"


@pytest.mark.parametrize("with_buffer", [(True, True), (False, False)])
def test_what_both_cast_or_keep_agrees(with_buffer):
    assert found(512, with_buffer=with_buffer).meta["first_divergence"] is None


def test_at_the_first_positions_the_angles_are_right():
    assert found(4, with_buffer=(False, True)).meta["first_divergence"] is None


def test_running_statistics_that_are_cast_agree():
    left = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).eval()
    left[1].running_mean.normal_()
    right, x = copy.deepcopy(left).bfloat16(), torch.linspace(-1, 1, 64).reshape(8, 8)
    assert nbkit.opalign(left, right, inputs=(x,), right_inputs=(x.bfloat16(),)).meta["first_divergence"] is None
