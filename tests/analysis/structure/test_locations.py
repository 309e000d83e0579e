from nbkit.analysis.structure.locations import common
from nbkit.analysis.structure.recognise import recognise
from nbkit.schema import MODULES, NODES
from tests.analysis.structure.graphs import Ops


def nodes_of(*rows):
    """Nodes of one graph: of each its module and its phase."""
    return NODES.frame(
        [
            {"node_id": location, "graph": "g", "kind": "op", "name": f"n{location}", "module": module, "phase": phase}
            for location, (module, phase) in enumerate(rows)
        ]
    )


def test_modules_become_parts_with_all_above_them():
    modules = MODULES.frame(
        [
            {"model": "M", "module": path, "type": of, "depth": 0, "calls": 1}
            | dict.fromkeys(("params", "trainable_params", "param_bytes", "buffer_bytes"), 0)
            for path, of in (("", "M"), ("layers.0", "Layer"))
        ]
    )
    frames = recognise({"nodes": nodes_of(("", None), ("layers.0", None), (None, None)), "modules": modules})
    parts = frames["parts"]
    assert parts["name"].tolist() == ["M", "layers", "0"]
    assert parts["module"].tolist() == ["", "layers", "layers.0"]
    assert parts["type"].fillna("?").tolist() == ["M", "?", "Layer"]
    assert parts["parent_id"].fillna(-1).tolist() == [-1, 0, 1]
    assert parts["nodes"].tolist() == [2, 1, 1]
    assert frames["nodes"]["part_id"].fillna(-1).tolist() == [0, 2, -1]


def test_a_training_step_has_its_modules_once_in_each_phase():
    rows = ("a", "forward"), ("a", "backward"), (None, "optimizer"), ("a.b", "backward")
    parts = recognise({"nodes": nodes_of(*rows)})["parts"]
    assert parts["name"].tolist() == ["forward", "backward", "optimizer", "a", "a", "b"]
    assert parts["phase"].tolist() == ["forward", "backward", "optimizer", "forward", "backward", "backward"]
    assert parts["nodes"].tolist() == [1, 2, 1, 1, 2, 1]
    assert parts["parent_id"].tolist()[3:] == [0, 1, 4]


def test_a_parameter_of_a_module_is_in_the_forward_of_a_training_step():
    ops = Ops()
    weight, table = ops("parameter", name="w", module="a"), ops("buffer", name="table", module="b")
    ops(
        "relu_grad",
        ops("relu", weight, name="made", module="a", phase="forward"),
        name="dw",
        module="a",
        phase="backward",
    )
    ops("add_grad", table, name="dtable", module="b", phase="backward")
    frames = recognise(ops.frames)
    places = frames["parts"].set_index("part_id")[["phase", "module"]].loc[frames["nodes"]["part_id"]]
    assert dict(zip(ops.ids, places.itertuples(index=False, name=None), strict=True)) == {
        "w": ("forward", "a"),
        "table": ("forward", "b"),
        "made": ("forward", "a"),
        "dw": ("backward", "a"),
        "dtable": ("backward", "b"),
    }
    assert len(frames["parts"]) == 6


def test_ops_of_the_root_belong_to_it_where_no_other_module_has_any():
    frames = recognise({"nodes": nodes_of(("", None), ("", None), (None, None))})
    assert frames["parts"]["name"].tolist() == ["g"]
    assert frames["nodes"]["part_id"].fillna(-1).tolist() == [0, 0, -1]


def test_what_several_phases_read_belongs_to_the_first():
    assert common([("backward", "a"), ("forward", "a", "b"), ("forward", "a", "c"), ()], "") == ("forward", "a")
    assert common([("backward", "a"), ("forward", "a", "b")], "backward") == ("backward", "a")
    assert common([("a", "b"), ("c",)], "") == ()


def test_a_parameter_without_a_path_belongs_where_it_is_read():
    ops = Ops()
    weight = ops("parameter", name="w")
    ops("MatMul", ops("input", name="x"), weight, module="layer.up")
    ops("Relu", weight, module="layer.act")
    frames = recognise(ops.frames)
    assert frames["nodes"]["part_id"].fillna(-1).tolist() == [
        frames["parts"]["name"].tolist().index(name) if name else -1 for name in ("layer", None, "up", "act")
    ]


def test_an_update_without_a_path_belongs_with_its_parameter_and_so_does_what_only_that_reads():
    ops = Ops()
    weight, bias = ops("parameter", name="w", module="up"), ops("parameter", name="b", module="down")
    ops("relu", weight, module="up", phase="forward")
    rate = ops("full", name="rate", phase="optimizer")
    ops("sgd", weight, rate, name="update", phase="optimizer")
    ops("sgd", bias, ops("full", name="shared", phase="optimizer"), name="other", phase="optimizer")
    ops("sgd", weight, "shared", name="again", phase="optimizer")
    frames = recognise(ops.frames)
    parts = dict(zip(frames["parts"]["part_id"], frames["parts"]["module"].fillna("?"), strict=True))
    places = dict(zip(ops.ids, frames["nodes"]["part_id"].map(parts), strict=True))
    told = {name: places[name] for name in ("rate", "update", "shared", "other", "again")}
    assert told == {"rate": "up", "update": "up", "shared": "?", "other": "down", "again": "up"}
