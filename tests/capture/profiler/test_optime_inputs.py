"""What optime(shapes=True) tells of the inputs of ops, held to what optrace records of the same step."""

import json

import pytest
import torch
import torch.nn.functional as F

import nbkit
from nbkit.capture.profiler.event_inputs import CODED, CODED_DTYPES
from nbkit.compat import torch_versions

pytestmark = pytest.mark.skipif(
    not hasattr(torch._C._autograd._KinetoEvent, "structured_input_strides") or not torch_versions.NAMES_OVERLOADS,
    reason="this torch tells neither strides nor overloads",
)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        x = F.dropout(F.gelu(self.norm(self.conv(x)), approximate="tanh"), 0.25, training=self.training)
        x = torch.cat([x, x.flip(1)], 1)[:, ::2].mean((2, 3)).to(torch.float64).clamp(min=0.1)
        return F.log_softmax(self.head(x.float()), dim=-1)


@pytest.fixture(scope="module")
def recorded():
    torch.manual_seed(0)
    net = Net()
    x = torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)

    def step():
        optimizer.zero_grad()
        F.nll_loss(net(x), torch.tensor([0, 1])).backward()
        optimizer.step()

    step()
    with nbkit.optrace() as trace:
        step()
    return trace, nbkit.optime(shapes=True).run(step)


def pairs(recorded):
    """Rows of the calls of an op in both traces, in order, of each op that both count the same; optime has more."""
    traced, timed = (trace.ops[trace.ops["level"] == "aten"] for trace in recorded)
    counts = traced["op"].value_counts()
    for op in counts[counts == timed["op"].value_counts().reindex(counts.index)].index:
        calls = zip(traced[traced["op"] == op].itertuples(), timed[timed["op"] == op].itertuples(), strict=True)
        yield from calls


def read(text):
    return json.loads(text) if isinstance(text, str) else {}


def test_arguments_are_those_of_optrace(recorded):
    compared = 0
    for mine, theirs in pairs(recorded):
        expected, given = read(mine.arguments), read(theirs.arguments)
        # torch.profiler tells neither texts nor devices; and a number that torch wrapped into a tensor is one to it.
        untold = {"approximate", "device", "rounding_mode"}
        untold |= {"other", "self"} if "Tensor" in mine.op else set()
        assert {name: value for name, value in expected.items() if name not in untold} == given, mine.op
        compared += len(given)
    assert compared > 60


@pytest.mark.parametrize(("column", "of_tensor"), [("input_dtypes", "dtype"), ("input_strides", "stride")])
def test_dtypes_and_strides_are_those_of_optrace(recorded, column, of_tensor):
    tensors = recorded[0].tensors
    inputs = tensors[(tensors["role"] == "input") & (tensors["shape"] != "[]")].groupby("op_id")[of_tensor].agg(list)
    compared = 0
    for mine, theirs in pairs(recorded):
        if "cat" in mine.op:  # a list of tensors
            continue
        expected = [read(each) if of_tensor == "stride" else each for each in inputs.get(mine.op_id, [])]
        has_size = [bool(shape) for shape in read(theirs.input_shapes) or ()]
        given = [
            value for value, is_told in zip(read(getattr(theirs, column)) or (), has_size, strict=False) if is_told
        ]
        assert given == expected, mine.op
        compared += len(given)
    assert compared > 40


@pytest.mark.parametrize(("cpp", "name"), CODED_DTYPES.values())
def test_every_dtype_is_named_by_torch(cpp, name):
    dtype = getattr(torch, name, None)
    if dtype is None:
        pytest.skip(f"this torch has no {name}")
    trace = nbkit.optime(shapes=True).run(lambda: torch.empty(2, dtype=dtype).view(-1))
    ops = trace.ops.set_index("op")
    assert json.loads(ops["arguments"]["aten.empty.memory_format"])["dtype"] == name
    assert json.loads(ops["input_dtypes"]["aten.view.default"])[0] == name


@pytest.mark.parametrize("name", CODED["MemoryFormat"].values())
def test_every_memory_format_is_named(name):
    x = torch.randn(1, 2, 3, 3, 3) if name == "channels_last_3d" else torch.randn(1, 2, 3, 3)
    trace = nbkit.optime(shapes=True).run(lambda: torch.clone(x, memory_format=getattr(torch, name)))
    assert json.loads(trace.ops.set_index("op")["arguments"]["aten.clone.default"]) == {"memory_format": name}


@pytest.mark.parametrize("name", ["strided", "sparse_coo", "sparse_csr"])
def test_layouts_are_named(name):
    trace = nbkit.optime(shapes=True).run(lambda: torch.empty(2, 2, layout=getattr(torch, name)))
    assert json.loads(trace.ops.query("op == 'aten.empty.memory_format'")["arguments"].iloc[0])["layout"] == name


def test_without_shapes_nothing_is_recorded_of_inputs():
    ops = nbkit.optime().run(lambda: torch.ones(2).sum()).ops
    assert ops[["input_shapes", "input_dtypes", "input_strides", "arguments"]].isna().to_numpy().all()
