from nbkit.analysis.structure.recognise import recognise
from tests.analysis.structure.graphs import Ops


def test_a_part_has_the_elements_of_its_parameters_as_far_as_sizes_are_known():
    ops = Ops()
    known, unknown = ops("parameter", shape=(4, 3), module="a"), ops("parameter", shape=(None, 5), module="b")
    ops("Mul", known, ops("Relu", unknown, module="b"), module="a.c")
    parts = recognise(ops.frames)["parts"]
    assert dict(zip(parts["module"], parts["params"], strict=True)) == {"a": 12, "a.c": 0, "b": 0}


def test_layers_whose_parameters_have_other_shapes_are_no_repeats():
    ops = Ops()
    for layer, size in enumerate((4, 8, 8)):
        ops("Mul", ops("parameter", shape=(size,), module=f"h.{layer}"), module=f"h.{layer}")
    parts = recognise(ops.frames)["parts"]
    assert parts["module"].tolist() == ["h", "h.0", "h.1", "h.2"]
    assert parts["repeat_of"].fillna(-1).tolist() == [-1, -1, 2, 2]
