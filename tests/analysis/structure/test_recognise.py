"""recognise() on models as torch exports them, with their names and without, and on the two sample dumps."""

import time
from functools import cache

import pytest

from nbkit.analysis.structure.recognise import recognise
from nbkit.capture.graphs.exported import exported_graph
from nbkit.capture.graphs.module_tree import module_tree
from nbkit.readers.onnx.reader import read_onnx_model
from nbkit.schema import NODES, PARTS
from tests.analysis.structure.graphs import Ops, nameless, roles
from tests.support.graph_models import MODELS, exported, model, onnx_bytes

BLOCKS = {
    "rwkv4": {"block": 6, "time_mix": 6, "channel_mix": 6, "norm": 14},
    "mamba": {"block": 2, "norm": 3},
    **{name: {"block": 2, "attention": 2, "mlp": 2, "norm": 5} for name in ("llama", "gpt2", "mistral", "qwen2")},
}
EMBEDDINGS = {"gpt2": 2}
ENDS = {"embedding": 1, "head": 1}


@cache
def export_frames(name):
    return exported_graph(exported(name))


def expected(name):
    rotary = {"rotary": 1} if name in ("mistral", "qwen2") else {}
    return {**BLOCKS[name], **ENDS, **rotary, "embedding": EMBEDDINGS.get(name, 1)}


@pytest.mark.parametrize("name", MODELS)
def test_the_module_tree_of_a_model(name):
    frames = recognise(module_tree(model(name)))
    assert roles(frames) == expected(name)
    assert frames["modules"].set_index("module")["role"].value_counts().to_dict() == roles(frames)


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model(name):
    assert roles(recognise(export_frames(name)), "export") == expected(name)


@cache
def onnx_frames(name, folder):
    path = folder / f"{name}.onnx"
    path.write_bytes(onnx_bytes(name))
    return read_onnx_model(path).frames


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("onnx")


@pytest.mark.parametrize("name", MODELS)
def test_an_onnx_model(name, folder):
    found = roles(recognise(onnx_frames(name, folder)))
    # The exporter folds position embeddings and rotary tables to constants.
    assert found | ENDS == {**BLOCKS[name], **ENDS}
    assert roles(recognise(nameless(onnx_frames(name, folder)))) | ENDS == {**BLOCKS[name], **ENDS}


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_without_names(name):
    frames = recognise(nameless(export_frames(name)))
    # Position embeddings are one part with those of tokens; rotary tables are no part of their own.
    assert roles(frames) == {**BLOCKS[name], **ENDS}
    layers = frames["parts"][frames["parts"]["role"] == "block"]
    assert layers["name"].tolist() == [f"layer {number}" for number in range(BLOCKS[name]["block"])]
    assert layers["number"].tolist() == list(range(BLOCKS[name]["block"]))


def test_no_op_of_mamba_is_said_to_be_attention_or_time_mix():
    for frames in (export_frames("mamba"), nameless(export_frames("mamba"))):
        told = set(recognise(frames)["nodes"]["role"].dropna())
        assert told == {"norm", "embedding", "head", "residual"}


def test_frames_given_stay_as_they_are_and_the_results_keep_to_the_schema():
    frames = export_frames("llama")
    before = {name: frame.copy() for name, frame in frames.items()}
    result = recognise(frames)
    assert all(frame.equals(frames[name]) for name, frame in before.items())
    NODES.check(result["nodes"])
    parts = PARTS.check(result["parts"])
    assert (parts["role"].isna() == parts["evidence"].isna()).all()
    assert (parts["parent_id"].fillna(-1) < parts["part_id"]).all()


def test_roles_and_phases_that_the_source_gives_stay():
    ops = Ops()
    ops("LayerNormalization", ops("input"), role="head", phase="other")
    assert recognise(ops.frames)["nodes"][["role", "phase"]].values.tolist()[1] == ["head", "other"]


def test_a_wrapper_with_a_norm_leaves_attention_to_what_it_wraps():
    ops = Ops("module tree")
    for path, kind in (
        ("0", "T5LayerSelfAttention"),
        ("0.att", "T5Attention"),
        ("0.att.q", "Linear"),
        ("0.ln", "LayerNorm"),
    ):
        ops.rows.node("module tree", "module", path, op=kind, module=path)
    parts = recognise(ops.frames)["parts"]
    assert dict(zip(parts["name"], parts["role"].fillna("?"), strict=True)) == {
        "0": "?",
        "att": "attention",
        "q": "?",
        "ln": "norm",
    }


def test_updates_of_a_parameter_stand_below_its_module():
    ops = Ops()
    for name in ("up", "down"):
        weight = ops("parameter", module=f"layer.{name}", name=name)
        ops("MatMul", weight, module=f"layer.{name}", phase="forward")
        state = ops("zeros_like", weight, phase="optimizer", name=f"{name} state")
        ops("add_", weight, ops("lerp_", state, phase="optimizer"), phase="optimizer", name=f"{name} update")
    frames = recognise(ops.frames)
    homes = frames["nodes"].set_index("name")["part_id"].map(frames["parts"]["name"])
    assert homes[["up state", "up update", "down update"]].tolist() == ["up", "up", "down"]
    assert frames["parts"].loc[frames["parts"]["phase"] == "optimizer", "role"].dropna().tolist() == ["optimizer"]


def test_an_empty_graph_and_one_with_a_cycle():
    assert len(recognise({"nodes": NODES.frame()})["parts"]) == 0
    ops = Ops()
    ops("Add", ops("Add", ops("input"), name="a"), name="b")
    ops.rows.edge(ops.ids["b"], ops.ids["a"], "b", dst_port=1)
    assert len(recognise(ops.frames)["nodes"]) == 3


def test_ten_thousand_ops_of_layers():
    ops = Ops()
    x = ops("input")
    for _ in range(1_000):
        normed = ops("LayerNormalization", x)
        gate, up = ops.linear(normed, 4, 8), ops.linear(normed, 4, 8)
        x = ops("Add", x, ops.linear(ops("Mul", ops("Silu", gate, shape=(2, 8, 8)), up, shape=(2, 8, 8)), 8, 4))
    frames = ops.frames
    began = time.process_time()
    found = recognise(frames)
    assert time.process_time() - began < 3.0
    assert len(found["nodes"]) > 10_000 and roles(found)["mlp"] == 1_000
