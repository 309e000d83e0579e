from nbkit.analysis.structure.recognise import recognise
from tests.analysis.structure.graphs import Ops


def roles_by_module(ops):
    parts = recognise(ops.frames)["parts"]
    return dict(zip(parts["module"], parts["role"].fillna("?"), strict=True))


def test_a_module_without_a_telling_name_has_the_role_of_the_one_pattern_in_it():
    ops = Ops()
    x = ops("input")
    ops("Mul", ops("LayerNormalization", x, module="m.one"), x, module="m.two")
    assert roles_by_module(ops) == {"m": "?", "m.one": "norm", "m.two": "?"}
