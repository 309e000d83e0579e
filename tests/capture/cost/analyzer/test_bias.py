"""With bias="split" the nodes are those of a model that is written with products and sums, and so are its numbers."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx import symbolic_trace

import nbkit

CONVOLUTIONS = {1: (nn.Conv1d, F.conv1d), 2: (nn.Conv2d, F.conv2d), 3: (nn.Conv3d, F.conv3d)}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}


class Joined(nn.Module):
    def __init__(self, spatial: int) -> None:
        super().__init__()
        self.spatial = spatial
        self.conv = CONVOLUTIONS[spatial][0](3, 4, 3)
        self.head, self.last = nn.Linear(4, 5), nn.Linear(5, 5, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.head(self.pooled(x)))

    def pooled(self, x: Tensor) -> Tensor:
        return self.conv(x).relu().flatten(2).mean(-1)


class Split(Joined):
    """The same by hand."""

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.linear(self.pooled(x), self.head.weight) + self.head.bias)

    def pooled(self, x: Tensor) -> Tensor:
        product = CONVOLUTIONS[self.spatial][1](x, self.conv.weight, stride=1, padding=0, dilation=1, groups=1)
        return (product + self.conv.bias.reshape((-1, *[1] * self.spatial))).relu().flatten(2).mean(-1)


def rows(table):
    return table[["op_kind", "name", "shape"]].to_numpy().tolist()


@pytest.mark.parametrize("spatial", CONVOLUTIONS)
def test_the_nodes_are_those_of_a_model_written_so(spatial):
    model, by_hand, x = Joined(spatial), Split(spatial), torch.randn(2, 3, *[6] * spatial)
    for convention in ("nbkit", "analyzer"):
        split = nbkit.cost_table(model, x, bias="split", convention=convention)
        written = nbkit.cost_table(by_hand, x, convention=convention)
        # fx takes each attribute just before the function that reads it in the code, a split call both at once
        is_op = [each["op_kind"] != "get_attr" for each in (split, written)]
        assert rows(split[is_op[0]]) == rows(written[is_op[1]])
        assert sorted(split["name"]) == sorted(written["name"])
        for name in ("forward_flops", "backward_flops", "output_bytes", "temp_bytes", "param_bytes"):
            assert split[is_op[0]][name].tolist() == written[is_op[1]][name].tolist()
    names = {node.name for node in symbolic_trace(by_hand).graph.nodes}
    assert {*written["name"]} == names


@pytest.mark.parametrize("spatial", TRANSPOSED)
def test_transposed_convolutions_keep_their_shape_and_their_products(spatial):
    model, x = nn.Sequential(TRANSPOSED[spatial](3, 4, 3, stride=2, groups=1)), torch.randn(2, 3, *[5] * spatial)
    joined, split = (nbkit.cost_table(model, x, bias=bias) for bias in ("joined", "split"))
    assert split["name"].tolist()[-4:] == [f"conv_transpose{spatial}d", "reshape", "add", "output"]
    assert split["shape"].iloc[-1] == joined["shape"].iloc[-1] == str([*model(x).shape])
    for name in ("forward_flops", "backward_flops"):
        assert split[name].sum() == joined[name].sum()


class Products(nn.Module):
    def forward(self, added: Tensor, left: Tensor) -> Tensor:
        x = torch.addmm(added, left, left, beta=2, alpha=3).addmm(left, left)
        return torch.addbmm(x, left[None].expand(2, -1, -1), left[None].expand(2, -1, -1))


def test_addmm_and_addbmm_are_products_and_sums():
    x = torch.randn(4, 4)
    split = nbkit.cost_table(Products(), x, x, bias="split", convention="analyzer")
    calls = [name for name in split["name"] if not name.startswith(("expand", "getitem", "added", "left", "output"))]
    assert calls == ["mm", "mul", "mul_1", "add", "mm_1", "add_1", "bmm", "sum_1", "add_2"]
    products, elements = 4**3 * (1 + 1 + 2), 4**2 * 5 + 2 * 4**2  # five sums and scalings of 4 x 4, the sum of two
    assert split["forward_flops"].sum() == products + elements


def test_a_module_with_products_inside_and_one_without_a_bias_stay_one_node():
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    joined, split = (nbkit.cost_table(model, torch.randn(2, 3, 8), bias=bias) for bias in ("joined", "split"))
    assert rows(joined) == rows(split)
    assert "bias" not in nbkit.cost_table_text(joined).splitlines()[2]
    assert nbkit.cost_table_text(split).splitlines()[2].endswith("bias: split")


def test_another_word_is_refused():
    with pytest.raises(nbkit.OptionError, match=r"bias='apart' is not known.*split"):
        nbkit.cost_table(nn.Linear(2, 2), torch.ones(1, 2), bias="apart")
