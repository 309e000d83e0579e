"""Shapes that follow from known values are those of a step that runs; what cannot be counted is refused."""

import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import nbkit
from bench.cost_memory import saved_by

X, IDS = torch.randn(4, 5, requires_grad=True), torch.tensor([1, 0, 2, 1])
FORMS = {
    "x[ids != 0]": lambda: X[IDS != 0],
    "x[ids.bool()]": lambda: X[IDS.bool()],
    "x[:, mask]": lambda: X[:, torch.tensor([True, False, True, False, True])],
    "x[mask] of two dimensions": lambda: X[(IDS != 0)[:, None] & torch.tensor([True, False, True, False, True])],
    "x[mask, index]": lambda: X[IDS != 0, torch.tensor([0, 1, 2])],
    "masked_select": lambda: X.masked_select(IDS[:, None] != 0),
    "nonzero": lambda: IDS.nonzero(),
    "where": lambda: torch.where(IDS)[0],
    "unique": lambda: IDS.unique(),
    "unique with counts": lambda: IDS.unique(return_counts=True)[1],
    "bincount": lambda: IDS.bincount(),
    "repeat_interleave": lambda: X.repeat_interleave(IDS, 0),
    "what follows from such a shape": lambda: X[IDS.nonzero()[:, 0]],
}


@pytest.mark.parametrize("name", FORMS)
def test_a_result_has_the_shape_that_it_has_when_it_runs(name):
    shapes = []

    def step():
        out = FORMS[name]()
        shapes.append((tuple(out.shape), out.stride(), out.dtype))
        if out.requires_grad:
            out.sum().backward()

    nbkit.opcost().run(step)
    step()
    X.grad = None
    assert shapes[0] == shapes[1]


def test_what_is_known_of_such_a_result_may_be_read():
    read = []
    nbkit.opcost().run(
        lambda: read.append((IDS.nonzero().tolist(), torch.equal(IDS, IDS + 1), int(IDS.unique().max())))
    )
    assert read == [([[0], [2], [3]], False, 2)]


@pytest.mark.parametrize("form", [lambda: X[X > 0], lambda: X.masked_select(X > 0), lambda: (X > 0).nonzero()])
def test_a_mask_of_unknown_values_is_bounded_and_the_result_says_so(form):
    shapes = []
    trace = nbkit.opcost(values="bound").run(lambda: shapes.append(form().shape[0]))
    assert shapes == [X.numel()] and sum(trace.meta["bounded_values"].values()) == 1
    assert "at most" in trace.brief() and "whose size depends on data is counted at the largest: aten." in trace.brief()


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_layer_of_packed_sequences_is_counted(kind, batch_first):
    layer, lengths = kind(8, 4, batch_first=batch_first, bidirectional=True), [5, 2, 4]
    x = torch.randn(3, 5, 8) if batch_first else torch.randn(5, 3, 8)
    shapes = []

    def forward():
        packed = pack_padded_sequence(x, lengths, batch_first=batch_first, enforce_sorted=False)
        out, _ = pad_packed_sequence(layer(packed)[0], batch_first=batch_first)
        shapes.append((out.shape, out.stride()))
        return out

    def step():
        layer.zero_grad()
        forward().sum().backward()

    trace = nbkit.opcost().run(step)
    held = x.nbytes + sum(parameter.nbytes for parameter in layer.parameters())
    runs = nbkit.optime(memory=True, warmup=1, repeats=1).run(step).memory["allocated_bytes"].max()
    assert len({*shapes}) == 1 and trace.memory["allocated_bytes"].max() == held + runs
    assert trace.saved["new_bytes"].sum() == saved_by(layer, forward)
    gates = 4 if kind is nn.LSTM else 3
    forward_flops = 2 * sum(lengths) * 2 * gates * 4 * (8 + 4)
    assert trace.costs.groupby("phase")["flops"].sum()["forward"] == forward_flops


def test_lengths_of_padded_sequences_are_known():
    read = []

    def step():
        packed = pack_padded_sequence(torch.randn(5, 2, 8), torch.tensor([4, 2]))
        out, lengths = pad_packed_sequence(packed, total_length=5)
        read.append((lengths.tolist(), tuple(out.shape)))

    nbkit.opcost().run(step)
    step()
    assert read == [([4, 2], (5, 2, 8))] * 2


def nested(layout):
    return torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)], layout=layout)


LAYER = nn.Linear(8, 4)
LOADER = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(3, 8)))
JAGGED, STRIDED = nested(torch.jagged), nested(torch.strided)
HEADS = torch.randn(1, 2, 128, 16)
ENCODER = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 1).eval().requires_grad_(False)
PADDED = torch.tensor([[False, False, True]])
REFUSED = {
    "jagged": (lambda: LAYER(JAGGED), "cannot take a nested tensor.* in Linear at .*; give the step a padded one"),
    "jagged, made inside": (lambda: LAYER(nested(torch.jagged)), "cannot take a nested tensor"),
    "nested": (lambda: LAYER(STRIDED), "cannot take a nested tensor"),
    "nested, made by an encoder in eval mode": (
        lambda: ENCODER(torch.randn(1, 3, 8), src_key_padding_mask=PADDED),
        "cannot take a nested tensor.*; give the step a padded one",
    ),
    "flex attention": (
        lambda: flex_attention(HEADS, HEADS, HEADS),
        "^flex_attention takes functions.*count scaled_dot",
    ),
    "cond": (
        lambda: torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (X,)),
        "^cond takes functions, and opcost does not know what it costs at .*; run this part outside.$",
    ),
    "a loader": (lambda: [LAYER(x) for (x,) in LOADER], "A DataLoader reads values.*take the batch out"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_counted_is_refused_in_one_sentence(name):
    step, message = REFUSED[name]
    with pytest.raises(nbkit.CostError, match=message) as refused:
        nbkit.opcost().run(step)
    assert "\n" not in str(refused.value)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("form", ["to_sparse_csr", "to_sparse_csc"])
def test_a_compressed_sparse_tensor_counts_as_one_of_coordinates_does(form):
    dense, x = torch.eye(6), torch.randn(6, 3)
    compressed, coordinates = getattr(dense, form)(), dense.to_sparse()
    compressed_product, product = (
        nbkit.opcost().run(lambda sparse=sparse: sparse @ x).costs for sparse in (compressed, coordinates)
    )
    assert compressed_product["flops"].tolist() == product["flops"].tolist() and product["flops"].sum() == 2 * 6 * 6 * 3
