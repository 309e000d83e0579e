"""What the tests of other tools ask of a comparison of two executions, asked of opalign.

The first 24 cases are those of onnx-array-api, onnx-diagnostic and polygraphy, in our own words and small models. What
those tools count is not asked: letters that stand for values, distances in points, a histogram with fixed limits.
"""

import numpy as np
import pytest
import torch

import nbkit

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402

from tests.readers.onnx.run.models import model, node, value  # noqa: E402
from tests.support.installed import needs  # noqa: E402

pytestmark = needs("onnxscript")

SQUARE = np.float32([[0, 1], [2, 3]])
INPUTS = [value(name, [2, 2]) for name in "ABX"]
GIVEN = dict.fromkeys("ABX", SQUARE)
LINEAR = [node("MatMul", "X A", "product"), node("Add", "product B", "sum")]


def marks(left, right, inputs=None):
    """The mark of each result, by its name on the left, else on the right."""
    rows = nbkit.opalign(left, right, inputs=GIVEN if inputs is None else inputs).alignment
    return dict(zip(rows["name"].fillna(rows["right_name"]), rows["mark"], strict=True))


def test_results_of_a_local_function_are_those_that_it_gives():
    parts = [helper.make_node("MatMul", ["x", "a"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    imports = [helper.make_opsetid("", 20)]
    function = helper.make_function("custom", "LinearRegression", ["x", "a", "b"], ["y"], parts, imports)
    nodes = [node("LinearRegression", "X A B", "Y1", domain="custom"), node("Abs", "Y1", "Y")]
    given = model(nodes, INPUTS, "Y", opsets={"": 20, "custom": 1}, functions=[function])
    trace = nbkit.opalign(given, given, inputs=GIVEN)
    rows = trace.frames["results"].query("side == 'left'").set_index("name")
    assert [*rows.index[:3]] == ["A", "B", "X"]
    assert rows.index[-2:].tolist() == ["Y1", "Y"] and rows["is_output"].tolist() == [False] * 5 + [True]
    assert rows.loc["Y1", ["min", "max", "mean"]].tolist() == [2, 14, 7]  # [[2, 4], [8, 14]]
    assert set(trace.alignment["mark"]) == {"="}


def test_results_that_have_other_names_only_are_all_paired():
    left = model([*LINEAR, node("Abs", "sum", "y")], INPUTS, "y")
    renamed = [node("MatMul", "X A", "p"), node("Add", "p B", "q"), node("Abs", "q", "r")]
    assert set(marks(left, model(renamed, INPUTS, "r")).values()) == {"="}


@pytest.mark.parametrize(("is_swapped", "mark"), [(False, "-"), (True, "+")])
def test_a_result_that_nobody_reads_is_the_only_gap(is_swapped, mark):
    weights = {"one": np.float32(1), "two": np.float32(2)}
    both = model([node("Add", "X one", "unused"), node("Add", "X two", "y")], INPUTS[2:], "y", weights)
    one = model([node("Add", "X two", "y")], INPUTS[2:], "y", {"two": np.float32(2)})
    sides = (one, both) if is_swapped else (both, one)
    found = marks(*sides, {"X": SQUARE})
    assert {name for name, given in found.items() if given != "="} == {"unused", "one"}
    assert found["unused"] == mark


def test_an_op_too_many_is_named_and_what_stands_before_it_agrees():
    left = model([*LINEAR, node("Abs", "sum", "y")], INPUTS, "y")
    right = model([*LINEAR, node("Exp", "sum", "power"), node("Abs", "power", "z")], INPUTS, "z")
    trace = nbkit.opalign(left, right, inputs=GIVEN)
    first = trace.meta["first_divergence"]
    assert (first["left"]["name"], first["right"]["name"], first["right"]["op"]) == ("y", "power", "Exp")
    before = trace.alignment.set_index("name").loc[["A", "B", "X", "product", "sum"]]
    assert set(before["mark"]) == {"="}


@pytest.mark.parametrize("there_and_back", [False, True])
def test_a_cast_that_changes_nothing_is_no_divergence(there_and_back):
    weights = {"two": np.float32(2)}
    left = model([node("Identity", "X", "k"), node("Add", "k two", "y")], INPUTS[2:], "y", weights)
    casts = [node("Cast", "X", "k", to=TensorProto.FLOAT)]
    if there_and_back:
        casts = [node("Cast", "X", "half", to=TensorProto.FLOAT16), node("Cast", "half", "k", to=TensorProto.FLOAT)]
    right = model([*casts, node("Add", "k two", "y")], INPUTS[2:], "y", weights)
    trace = nbkit.opalign(left, right, inputs={"X": SQUARE})
    assert trace.meta["first_divergence"] is None
    assert set(trace.alignment["mark"]) <= {"=", "+"}


class Chain(torch.nn.Module):
    def forward(self, x):
        return torch.log(torch.exp(torch.abs(x)) + 1)


class Product(torch.nn.Module):
    def forward(self, x, y):
        return (x.reshape(2, 3, 4).transpose(1, 2) @ y.reshape(2, 3, 4)).transpose(1, 2).reshape(2, 16)


class Unique(torch.nn.Module):
    def forward(self, x):
        return torch.unique_consecutive(x) * 2 + 1


def sequential():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()


EXPORTED = {
    "a chain of functions": (Chain, (torch.linspace(-1, 1, 20).reshape(5, 4),)),
    "products of what is reshaped and transposed": (
        Product,
        (torch.linspace(-1, 1, 24).reshape(2, 12), torch.linspace(2, -1, 24).reshape(2, 12)),
    ),
    "layers with weights": (sequential, (torch.linspace(-1, 1, 18).reshape(3, 6),)),
    "a shape that depends on values": (Unique, (torch.tensor([0, 1, 2, 2, 3, 3, 0, 0, 0]),)),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_model_has_a_partner_for_each_tensor_that_is_read(name):
    make, inputs = EXPORTED[name]
    trace = nbkit.opalign(make(), "onnx", inputs=inputs)
    assert trace.meta["first_divergence"] is None and not trace.meta["error"]
    alone = trace.alignment[trace.alignment["mark"] == "-"]
    assert set(alone["name"]) <= {"unique_consecutive[1]", "unique_consecutive[2]"}  # which the model does not return
    assert (trace.alignment["mark"] != "~").all()


class Rounded(torch.nn.Module):
    """Two layers, with what the first one gives rounded to a dtype in between."""

    def __init__(self, dtype):
        super().__init__()
        torch.manual_seed(0)
        self.dtype, self.up, self.down = dtype, torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        with torch.no_grad():
            self.up.bias.copy_(torch.linspace(500, 1_500, 16))

    def forward(self, x):
        return torch.tanh(self.down(self.up(x).to(self.dtype).float()) / 1_000)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("side", ["left", "right"])
def test_what_is_rounded_on_one_side_is_where_they_diverge(dtype, side):
    sides = [Rounded(torch.float32), Rounded(dtype)]
    trace = nbkit.opalign(*sides[:: 1 if side == "right" else -1], inputs=[torch.linspace(-1, 1, 24).reshape(3, 8)])
    first = trace.meta["first_divergence"]
    assert (first["kind"], first[side]["op"]) == ("accumulation_dtype", "aten._to_copy.default")
    name = str(dtype).removeprefix("torch.")
    assert f"The {side} one alone casts addmm to {name} and back; without that cast they agree." in first["message"]
    assert first["kind_explained"] < 0.01
    # What comes after it has come in: the same op, given what the left one reads, gives what the left one gives.
    last = trace.alignment.query("name == 'tanh'").iloc[0]
    assert last["error_class"] == "propagated"
    assert last["output_error"] > 1e-5 > 1e-6 > last["local_error"]


def test_a_cast_in_an_onnx_model_is_where_it_diverges():
    weights = {"up": np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8), "down": np.tri(8, dtype=np.float32)}
    inputs = [value("x", [4, 8])]
    left = model([node("MatMul", "x up", "a"), node("MatMul", "a down", "y")], inputs, "y", weights)
    nodes = [
        node("MatMul", "x up", "a"),
        node("Cast", "a", "half", to=TensorProto.FLOAT16),
        node("Cast", "half", "b", to=TensorProto.FLOAT),
        node("MatMul", "b down", "y"),
    ]
    right = model(nodes, inputs, "y", weights)
    x = np.linspace(1, 2, 32, dtype=np.float32).reshape(4, 8)
    first = nbkit.opalign(left, right, inputs={"x": x}).meta["first_divergence"]
    assert (first["kind"], first["right"]["name"]) == ("accumulation_dtype", "half")


def test_each_product_of_an_attention_agrees_when_run_again_alone():
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    trace = nbkit.opalign(lambda x: attention(x, x, x), lambda x: attention(x, x, x), inputs=[x])
    assert trace.meta["first_divergence"] is None
    assert (trace.alignment["local_error"].dropna() < 1e-5).all()


def test_a_convolution_faces_the_fused_one():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 3), torch.nn.ReLU()
    ).eval()
    trace = nbkit.opalign(layers, "onnxruntime", inputs=[torch.randn(1, 3, 8, 8)])
    rows = trace.alignment
    assert trace.meta["first_divergence"] is None
    fused = rows[rows["right_op"].fillna("").str.contains("FusedConv") & rows["name"].fillna("").str.startswith("relu")]
    assert len(fused) == 2 and (fused["mark"] == "=").all()
    inside = rows[(rows["mark"] == "-") & rows["op"].fillna("").str.contains("convolution|relu")]
    assert len(inside) == 2 and (inside["relation"] == "folded").all()


def errors(left, right):
    """The row of two results, which read the same."""
    kinds = {np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.float16): TensorProto.FLOAT16}
    dtype = kinds.get(left.dtype, TensorProto.FLOAT)
    sides = [
        model([node("Add", "x w", "y")], [value("x", list(left.shape), dtype)], "y", {"w": each})
        for each in (left, right)
    ]
    rows = nbkit.opalign(*sides, inputs={"x": np.zeros_like(left)}).alignment
    return rows[rows["name"] == "y"].iloc[0]


@pytest.mark.parametrize(
    ("dtype", "left", "right", "absolute", "relative"),
    [
        (np.uint8, [0], [1], 1, np.inf),  # 0 - 1 does not wrap
        (np.uint8, [1], [0], 1, 1),
        (np.float32, [1], [0], 1, 1),
        (np.float16, [0], [1], 1, np.inf),
        (np.float16, [1], [0], 1, 1),
    ],
)
def test_errors_of_single_numbers(dtype, left, right, absolute, relative):
    row = errors(np.array(left, dtype), np.array(right, dtype))
    assert (row["mark"], row["max_abs_error"], row["output_error"]) == ("~", absolute, relative)


@pytest.mark.parametrize("moved", [0.1, 0.01, 0.001, 1.0, 10.0, 100.0, 1000.0])
def test_one_element_that_moves_is_the_largest_error(moved):
    left = np.ones((4, 4), np.float32)
    right = left.copy()
    right[1, 2] += np.float32(moved)
    row = errors(left, right)
    assert row["mark"] == "~"
    assert row["max_abs_error"] == pytest.approx(moved, rel=1e-3)
    assert row["mean_abs_error"] == pytest.approx(moved / 16, rel=1e-3)


@pytest.mark.parametrize(
    ("left", "right", "mark"),
    [
        ([np.nan, 1], [0, 1], "~"),
        ([0, 1], [np.nan, 1], "~"),
        ([np.inf, 1], [np.inf, 1], "="),
        ([np.inf, 1], [-np.inf, 1], "~"),
        ([], [], "="),
    ],
)
def test_what_is_no_number_is_equal_to_itself_alone(left, right, mark):
    assert errors(np.float32(left), np.float32(right))["mark"] == mark


def test_one_outlier_among_hundred_is_no_rounding():
    left = np.linspace(1, 2, 100, dtype=np.float32)
    right = left.copy()
    right[40] += 100
    row = errors(left, right)
    assert row["mark"] == "~"
    assert (row["max_abs_error"], row["mean_abs_error"]) == (pytest.approx(100), pytest.approx(1))
