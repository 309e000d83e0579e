"""Locates that dataflow gives to the nodes of graphs without paths."""

from nbkit.analysis.structure.recognise import recognise
from tests.analysis.structure.graphs import Ops, roles


def paths(frames):
    parts = frames["parts"]
    names: list[str] = []
    for name, parent in zip(parts["name"], parts["parent_id"].fillna(-1).astype("int64"), strict=True):
        names.append(name if parent < 0 else f"{names[parent]}/{name}")
    return dict(zip(frames["nodes"]["name"], frames["nodes"]["part_id"].map(dict(enumerate(names))), strict=True))


def mlp(ops, x):
    return ops.linear(ops("Gelu", ops.linear(x, 4, 8), shape=(2, 8, 8)), 8, 4)


def test_a_norm_after_an_addition_stands_in_the_layer_of_it():
    ops = Ops()
    x = ops("input")
    for layer in range(2):
        x = ops("LayerNormalization", ops("Add", x, mlp(ops, x), name=f"add {layer}"), name=f"norm {layer}")
    found = paths(recognise(ops.frames))
    assert [found["add 0"], found["norm 0"]] == ["layer 0", "layer 0/norm after mlp"]
    assert found["norm 1"] == "final norm"


def test_parallel_branches_are_no_part_of_either_kind_but_their_ops_are():
    ops = Ops()
    x = ops("input")
    for _ in range(2):
        normed = ops("LayerNormalization", x)
        q, k, v = (ops.linear(normed, 4, 4) for _ in range(3))
        attended = ops.linear(ops("Attention", q, k, v, name=f"attend {normed}"), 4, 4)
        x = ops("Add", ops("Add", attended, mlp(ops, normed)), x)
    frames = recognise(ops.frames)
    assert roles(frames) == {"block": 2, "norm": 2}
    assert set(frames["nodes"]["role"].dropna()) == {"attention", "mlp", "norm", "residual"}


def test_what_only_the_loss_reads_is_not_the_loss():
    ops = Ops()
    x = ops("input")
    for _ in range(2):
        x = ops("Add", x, mlp(ops, x))
    copied = ops("MatMul", ops.linear(x, 4, 9, name="q"), ops.linear(x, 4, 9), name="copied", shape=(2, 8, 9))
    logits = ops("Add", ops.linear(x, 4, 9), copied, name="logits", shape=(2, 8, 9))
    ops("cross_entropy", ops("Reshape", logits, name="flat"), ops("input"), name="loss")
    found = paths(recognise(ops.frames))
    assert [found["loss"], found["flat"]] == ["loss", "loss"]
    assert found["copied"] != found["copied"] and found["logits"] != found["logits"]


def test_a_step_without_paths_has_its_backward_beside_the_forward_parts():
    ops = Ops()
    x = ops("input", phase="forward")
    weight = ops("parameter", shape=(4, 8), name="w")
    wide = ops("matmul_v2", x, weight, shape=(2, 8, 8), name="wide", phase="forward")
    back = ops("parameter", shape=(8, 4))
    for name in ("a", "b"):
        branch = ops(
            "matmul_v2", ops("gelu", wide, shape=(2, 8, 8), phase="forward"), back, phase="forward", name=f"{name}2"
        )
        x = ops("elementwise_add", x, branch, phase="forward", name=name)
        wide = ops("matmul_v2", x, weight, shape=(2, 8, 8), phase="forward")
    ops("matmul_v2_grad", "wide", weight, name="wide@GRAD", phase="backward")
    frames = recognise(ops.frames)
    assert frames["parts"].loc[frames["parts"]["parent_id"].isna(), "name"].tolist() == ["forward", "backward"]
    assert paths(frames)["wide"].removeprefix("forward") == paths(frames)["wide@GRAD"].removeprefix("backward")


def test_branches_that_do_not_repeat_are_counted():
    ops = Ops()
    x = ops("input")
    for width in (8, 12):
        wide = ops.linear(ops("LayerNormalization", x, name=f"norm {width}"), 4, width)
        x = ops("Add", x, ops.linear(ops("Gelu", wide, shape=(2, 8, width), name=f"gelu {width}"), width, 4))
    found = paths(recognise(ops.frames))
    assert [found["gelu 8"], found["gelu 12"]] == ["mlp 0", "mlp 1"]
    assert [found["norm 8"], found["norm 12"]] == ["norm before mlp 0", "norm before mlp 1"]


def test_a_stream_may_begin_at_a_part_of_what_is_not_in_the_graph():
    ops = Ops()
    x = ops("Split")
    for layer in range(2):
        x = ops("Add", x, mlp(ops, x), name=f"add {layer}")
    found = paths(recognise(ops.frames))
    assert [found["add 0"], found["add 1"]] == ["layer 0", "layer 1"]


def test_a_norm_at_the_end_of_a_branch_stands_after_it():
    ops = Ops()
    x = ops("input")
    for layer in range(2):
        normed = ops("LayerNormalization", x, name=f"first {layer}")
        x = ops("Add", x, ops("LayerNormalization", mlp(ops, normed), name=f"last {layer}"))
    found = paths(recognise(ops.frames))
    assert [found["first 1"], found["last 1"]] == ["layer 1/norm before mlp", "layer 1/norm after mlp"]
