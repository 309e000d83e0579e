"""What a log says of its run and its modules' tensors, in frames; SBP and fused additions in those of the graph."""

from typing import Any

import pytest

from nbkit.readers.oneflow.text.tensor_text import tensor_text
from tests.readers.oneflow import logs
from tests.readers.oneflow.frames import edges_of, nodes_of, tensors_of

CONFIG = "[08/24 02:43:17 libai]: Contents of args.config_file=a.py:\n# lr = 3\ntrain.lr = 8e-4\n"
PASSED = """\
(GRAPH:Net_0:Net): (
  (MODULE:model.fc:Linear(in_features=4, out_features=2, bias=False)): (
    (INPUT:_model.fc_input.0.0_2:tensor(..., placement=oneflow.placement(type="cuda", ranks=[0, 1]),
           sbp=(oneflow.sbp.split(dim=0),), is_lazy='True', size=(8, 4), dtype=oneflow.float32))
    (PARAMETER:model.fc.weight:tensor(..., sbp=(oneflow.sbp.broadcast,), size=(2, 4), dtype=oneflow.float32,
           requires_grad=True)): ()
    (BUFFER:model.fc.mask:tensor(..., size=(2,), dtype=oneflow.bool)): ()
    (OUTPUT:_model.fc_output.0.0_2:tensor(..., placement=oneflow.placement(type="cuda", ranks=[0, 1]),
           sbp=(oneflow.sbp.split(dim=0), oneflow.sbp.partial_sum), is_lazy='True', size=(8, 2),
           dtype=oneflow.float32, grad_fn=<matmul_backward>))
  )
  (INPUT:_Net_0_input.1.0_idx:tensor(..., size=(8, 4), dtype=oneflow.float32))
)
"""


def test_passes_memory_and_settings_are_frames(tmp_path: Any) -> None:
    trace = logs.read(tmp_path, CONFIG + logs.text(logs.records()))
    assert trace.passes[["graph", "number", "name", "duration_us"]].values.tolist() == [
        ["Net_0", 0, "AutoMixedPrecision", pytest.approx(250_000.0)]
    ]
    plan = trace.memory_plan[["graph", "rank", "device", "kind", "count", "size_bytes"]].fillna(-1)
    assert plan.values.tolist() == [
        ["Net_0", 0, 0, "total", -1, 12_500_000],
        ["Net_0", 0, 0, "chunk", 3, 10_000_000],
        ["Net_0", 0, 0, "unreused", 2, 1_500_000],
        ["Net_0", 0, 0, "eager_variables", 1, 1_000_000],
    ]
    settings = trace.settings.set_index("name")["text"].to_dict()
    assert settings == {"iterations": "100", "config_file": "a.py", "train.lr": "0.0008"}
    assert trace.meta["oneflow"]["config"] == ["# lr = 3", "train.lr = 8e-4"]


def test_sizes_that_no_device_has_are_null(tmp_path: Any) -> None:
    trace = logs.read(tmp_path, logs.text(logs.records()).replace("[ 12.5 MiB ]", "[ 1e300 MiB ]"))
    assert trace.memory_plan["size_bytes"].isna().tolist() == [True, False, False, False]
    assert trace.memory_plan.columns[0] == "graph" and "Memory planned" not in trace.summary()


def test_a_config_that_cannot_be_read_is_noted(tmp_path: Any) -> None:
    trace = logs.read(tmp_path, CONFIG.replace("train.lr =", "train.lr: [") + logs.text(logs.records()))
    assert any("config file in the log is no Python" in note for note in trace.meta["notes"])


def test_tensors_of_modules_have_sbp_placement_and_what_made_them(tmp_path: Any) -> None:
    rows = logs.read(tmp_path, PASSED).module_tensors
    columns = ["module", "kind", "name", "dtype", "shape", "sbp", "device", "is_lazy", "requires_grad", "grad_fn"]
    weight = "model.fc.weight"
    assert rows[columns].astype(object).where(rows[columns].notna(), None).values.tolist() == [
        ["model.fc", "input", "_model.fc_input.0.0_2", "float32", "[8, 4]", "S(0)", "cuda [0, 1]", True, False, None],
        ["model.fc", "output", "_model.fc_output.0.0_2", "float32", "[8, 2]", "S(0), P", "cuda [0, 1]", True, True,
         "matmul_backward"],
        ["", "input", "_Net_0_input.1.0_idx", "float32", "[8, 4]", None, None, False, False, None],
        ["model.fc", "parameter", weight, "float32", "[2, 4]", "B", None, False, True, None],
        ["model.fc", "buffer", "model.fc.mask", "bool", "[2]", None, None, False, False, None],
    ]  # fmt: skip


def test_sbp_of_other_versions() -> None:
    assert tensor_text("tensor(..., sbp=(flow.sbp.split(axis=12),), size=(1,))").sbp == ("S(12)",)
    assert tensor_text("tensor(..., sbp=(oneflow.sbp.split(1), oneflow.sbp.broadcast), size=(1,))").sbp == ("S(1)", "B")
    assert tensor_text("tensor(..., size=(1,))").sbp == ()
    assert tensor_text("tensor(..., sbp=(oneflow.sb").sbp == ()


def test_sbp_is_a_column_of_nodes_edges_and_tensors(tmp_path: Any) -> None:
    listing = "\n".join(logs.listing()).replace(
        "model.fc.weight-out-cast_f2h/out_0:(sbp=(B), size=(2, 4), dtype=(oneflow.float16)), _Net",
        "model.fc.weight-out-cast_f2h/out_0:(sbp=(S(1)), size=(2, 4), dtype=(oneflow.float16)), _Net",
    )
    trace = logs.read(tmp_path, listing)
    nodes = nodes_of(trace, "Net_0 compiled").set_index("name")["sbp"]
    assert nodes["model.fc.weight-out-cast_f2h"] == "B"
    assert tensors_of(trace, "Net_0 compiled").set_index("tensor")["sbp"]["model.fc-matmul-0/out_0"] == "B"
    edges = edges_of(trace, "Net_0 compiled")
    # What is read in another way than it was made has been through boxing.
    assert edges.loc[edges["tensor"] == "model.fc.weight-out-cast_f2h/out_0", "sbp"].tolist() == ["S(1)"]


def test_what_a_fused_addition_adds_is_an_edge_also_where_a_pruned_cast_stood_between(tmp_path: Any) -> None:
    product, other = "model.fc-matmul-0/out_0", "ones_like-2/out_0"
    boxed = "hierarchical_parallel_cast-7"
    cast = logs.op(boxed, logs.user("hierarchical_parallel_cast", {"in": [other]}, {"out": [f"{boxed}/out_0"]}))
    addition = logs.op("add_n-8", logs.user("add_n", {"in": [product, f"{boxed}/out_0"]}, {"out": ["add_n-8/out_0"]}))
    reader = logs.op("relu-9", logs.user("relu", {"x": ["add_n-8/out_0"]}, {"y": ["relu-9/y_0"]}))
    *built, done = logs.built()
    listing = logs.listing()
    listing.insert(-1, logs.operator("relu-9", [f"{product}|8, 2|float16"], ["relu-9/y_0|8, 2|float16"]))
    trace = logs.read(tmp_path, logs.text([*built, cast, addition, reader, done, listing]))
    names = trace.nodes["name"]
    added = trace.edges[trace.edges["slot"] == "_add_to_output"]
    assert [(names[row.src], names[row.dst], row.dst_port, row.tensor) for row in added.itertuples()] == [
        ("ones_like-2", "model.fc-matmul-0", 2, other)
    ]
