from nbkit.analysis.structure.recognise import recognise
from tests.analysis.structure.graphs import Ops


def test_a_part_has_the_elements_of_its_parameters_as_far_as_sizes_are_known():
    ops = Ops()
    known, unknown = ops("parameter", shape=(4, 3), module="a"), ops("parameter", shape=(None, 5), module="b")
    ops("Mul", known, ops("Relu", unknown, module="b"), module="a.c")
    parts = recognise(ops.frames)["parts"]
    assert dict(zip(parts["module"], parts["params"], strict=True)) == {"a": 12, "a.c": 0, "b": 0}
