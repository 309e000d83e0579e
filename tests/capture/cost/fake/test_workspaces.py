"""What an LSTM keeps for its backward pass beside its results is as large as when it runs."""

import pytest
import torch
from torch import nn

import nbkit
from bench.cost_memory import saved_by
from nbkit.capture.cost.fake import workspaces
from nbkit.capture.cost.fake.workspaces import LSTM, Layer, Workspaces, workspace_bytes

needs_mkldnn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")
X = torch.randn(16, 50, 64)
LAYERS = {
    "one layer": (nn.LSTM(64, 128, batch_first=True), X),
    "two of both directions": (nn.LSTM(64, 24, num_layers=2, bidirectional=True, dropout=0.5), X),
    "no biases, an odd width": (nn.LSTM(64, 33, bias=False, batch_first=True), X),
    "one sequence": (nn.LSTM(64, 20), X[0]),
    "a projection, without oneDNN": (nn.LSTM(64, 32, proj_size=8), X),
    "GRU, without oneDNN": (nn.GRU(64, 32), X),
}


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
@pytest.mark.parametrize("name", LAYERS)
def test_saved_bytes_are_those_of_a_layer_that_runs(name):
    model, x = LAYERS[name]
    trace = nbkit.opcost().run(lambda: model(x))
    assert trace.saved["new_bytes"].sum() == saved_by(model, lambda: model(x)) > 0
    assert trace.meta["notes"] == []


@needs_mkldnn
def test_a_step_fits_only_with_what_it_keeps():
    model, x = LAYERS["one layer"]
    answer = nbkit.fits(lambda: model(x)[0].sum().backward(), "4 MB")
    assert not answer and answer.peak_bytes > saved_by(model, lambda: model(x)) > 4_000_000


def test_without_gradients_nothing_is_kept():
    model, x = LAYERS["one layer"]
    with torch.no_grad():
        trace = nbkit.opcost().run(lambda: model(x))
    assert not len(trace.saved) and trace.memory["allocated_bytes"].max() < 1_500_000


SIZES = [(400, 2, 10, 16), (700, 1, 7, 20), (5, 400, 8, 40), (300, 320, 4, 32), (301, 257, 4, 8), (1700, 1, 3, 33)]


@needs_mkldnn
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("length", "batch", "width", "hidden"), SIZES)
def test_a_large_one_is_told_by_small_ones(length, batch, width, hidden, dtype, monkeypatch):
    zeros = [torch.zeros(shape, dtype=dtype) for shape in ((length, batch, width), (4 * hidden, width))]
    zeros += [torch.zeros(4 * hidden, hidden, dtype=dtype), *torch.zeros(2, 4 * hidden, dtype=dtype)]
    zeros += torch.zeros(2, batch, hidden, dtype=dtype)
    try:
        kept = LSTM(*zeros, False, [], 2, hidden, 1, True, False, False, True)[3].nbytes
    except RuntimeError:
        pytest.skip(f"this CPU has no LSTM of {dtype}")
    asked, measure = [], workspaces._measured
    monkeypatch.setattr(workspaces, "_measured", lambda *point: asked.append(point[:2]) or measure(*point))
    layer = Layer(width, hidden, dtype, (1, True, False, False, True))
    assert workspace_bytes.__wrapped__(length, batch, layer) == kept
    assert len(asked) in ((3, 5) if dtype == torch.float32 else (1, 3, 5)) and len({*asked}) == len(asked)


def test_sizes_that_do_not_grow_evenly_are_not_known(monkeypatch):
    monkeypatch.setattr(workspaces, "_measured", lambda steps, batch, layer: batch * steps**2)
    layer = Layer(4, 4, torch.float32, (1, True, False, False, False))
    assert workspace_bytes(3, 2, layer) == 18 and workspace_bytes(10_000, 2, layer) is None


@needs_mkldnn
def test_what_takes_too_long_to_find_out_is_said_not_to_be_known():
    def step():
        nn.LSTM(20_000, 20_000)(torch.zeros(2, 3, 20_000))

    assert nbkit.opcost().run(step).meta["notes"] == [
        "What aten.mkldnn_rnn_layer keeps for the backward pass beside its results is not known of 1 call and counts "
        "as 0: saved bytes and peak are larger."
    ]


def test_of_an_accelerator_it_is_not_known():
    known, x, state = Workspaces(), torch.empty(5, 2, 8, device="meta"), torch.empty(1, 2, 4, device="meta")
    op = torch.ops.aten._cudnn_rnn.default
    weights = [torch.empty(16, 8, device="meta"), torch.empty(16, 4, device="meta")]
    for train in (False, True):
        call = (x, weights, 2, None, state, state, 2, 4, 0, 1, False, 0.0, train, False, [], None)
        out = op(*call)
        assert known.filled(op, call, out) is out
    assert dict(known.unknown) == {"aten._cudnn_rnn": 1}
