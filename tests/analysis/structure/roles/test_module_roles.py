import pytest

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


def test_communication_is_not_of_the_role_of_the_module_that_does_it():
    ops = Ops()
    normed = ops("LayerNormalization", ops("input"), module="m.one")
    ops("_c10d_functional.all_reduce.default", normed, module="m.one", name="sum")
    ops("Identity", normed, module="m.one", name="other")
    nodes = recognise(ops.frames)["nodes"].set_index("name")
    assert nodes.loc[["sum", "other"], "role"].tolist() == ["communication", "norm"]


@pytest.mark.parametrize(
    ("last", "roles"),
    [
        ("m.a", {"m": "?", "m.a": "attention"}),
        ("m.b", {"m": "attention", "m.a": "?", "m.b": "?"}),
        ("", {"": "?", "m": "?", "m.a": "?"}),
        (None, {"m": "?", "m.a": "?"}),
    ],
)
def test_a_pattern_is_in_the_innermost_module_that_holds_all_of_it(last, roles):
    ops = Ops()
    q, k, v = (ops("input", module="m.a") for _ in range(3))
    weights = ops("Softmax", ops("MatMul", q, k, module="m.a"), module="m.a")
    ops("MatMul", weights, v, module=last)
    assert roles_by_module(ops) == roles


@pytest.mark.parametrize(("shape", "role"), [((4,), "norm"), ((4, 4), "?")])
def test_a_module_is_a_norm_by_its_name_if_its_parameters_may_be_those_of_one(shape, role):
    ops = Ops()
    weight = ops("parameter", name="m.ln.weight", module="m.ln", shape=shape)
    ops("FancyKernel", ops("input"), weight, module="m.ln")
    assert roles_by_module(ops) == {"m": "?", "m.ln": role}
