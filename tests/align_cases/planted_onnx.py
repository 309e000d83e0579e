"""Faults planted in ONNX models: 30 of them, each at one node, with the results that may differ first."""

from ast import literal_eval
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.align_cases.onnx_models import SMALL, Arrays, constants_of, exported, inputs_of, optimised, results_of
from tests.align_cases.onnx_pairs import truth

LENGTH = 64
# What a kind is called by opalign.
KINDS = {
    "one element": {"other_weights"},
    "transposed": {"transposed"},
    "epsilon": {"epsilon"},
    "scale": {"scale"},
    "float16": {"accumulation_dtype"},
    "nan": {"nan"},
}


@dataclass(frozen=True)
class Planted:
    """Holds a right model that differs in one place.

    What may be called the first to differ are names of results and initializers: on the right where the fault is, on
    the left also what has the values that are right there, as views do.
    """

    name: str
    kind: str
    model_left: Any
    model_right: Any
    inputs: Arrays
    places_left: frozenset[str]
    places_right: frozenset[str]

    @property
    def places(self) -> frozenset[str]:
        return self.places_left | self.places_right


def weights(model: Any, square: bool = False) -> list[str]:
    """Returns the initializers that a matrix product reads, in the order of the nodes."""
    shapes = {each.name: tuple(each.dims) for each in model.graph.initializer}
    read = [name for node in model.graph.node if node.op_type == "MatMul" for name in node.input if name in shapes]
    return [name for name in read if not square or len(set(shapes[name])) == 1]


def changed(model: Any, name: str, change: Callable[[np.ndarray], np.ndarray]) -> set[str]:
    """Changes an initializer and returns it and the results that are made from it."""
    from onnx import numpy_helper

    tensor = next(each for each in model.graph.initializer if each.name == name)
    value = change(numpy_helper.to_array(tensor).copy())
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(value), name))
    return {name, *(result for node in model.graph.node if name in node.input for result in node.output)}


def one_element(model: Any, which: int) -> set[str]:
    def change(weight: np.ndarray) -> np.ndarray:
        weight[5, 7] += 3 * weight.std()
        return weight

    return changed(model, weights(model)[which], change)


def transposed(model: Any, which: int) -> set[str]:
    return changed(model, weights(model, square=True)[which], lambda weight: weight.T)


def epsilon(model: Any, which: int) -> set[str]:
    """Gives one norm an epsilon of its own, a tenth of the others'."""
    from onnx import numpy_helper

    means = {node.output[0] for node in model.graph.node if node.op_type == "ReduceMean"}
    node = [each for each in model.graph.node if each.op_type == "Add" and means & set(each.input)][which]
    position = next(index for index, name in enumerate(node.input) if name not in means)
    shared = next(each for each in model.graph.initializer if each.name == node.input[position])
    own = numpy_helper.from_array(numpy_helper.to_array(shared) / np.float32(10), f"{shared.name}_{which + 1}")
    model.graph.initializer.append(own)
    name, node.input[position] = node.input[position], own.name
    return {name, own.name, *node.output}


def scale(model: Any, op: str) -> set[str]:
    """Changes the factor within a fused op by a tenth."""
    node = next(each for each in model.graph.node if each.op_type == op)
    attribute = next(each for each in node.attribute if each.name == "alpha")
    attribute.f *= 1.1
    return set(node.output)


def float16(model: Any, result: str) -> set[str]:
    """Puts a cast to float16 and back behind a result, in front of all that read it."""
    from onnx import TensorProto, helper

    readers = [node for node in model.graph.node if result in node.input]
    place = next(index for index, node in enumerate(model.graph.node) if result in node.output) + 1
    half, back = f"{result}_half", f"{result}_back"
    for node in readers:
        for position, name in enumerate(node.input):
            if name == result:
                node.input[position] = back
    model.graph.node.insert(place, helper.make_node("Cast", [half], [back], to=TensorProto.FLOAT))
    model.graph.node.insert(place, helper.make_node("Cast", [result], [half], to=TensorProto.FLOAT16))
    return {result, half, back, *(name for node in readers for name in node.output)}


def nan(model: Any, name: str) -> set[str]:
    def change(value: np.ndarray) -> np.ndarray:
        value.ravel()[value.size // 2] = np.nan
        return value

    return changed(model, name, change)


def norm_weight(model: Any, which: int) -> str:
    return [each.name for each in model.graph.initializer if each.name.endswith("norm.weight")][which]


def nan_in_norm(model: Any, which: int) -> set[str]:
    return nan(model, norm_weight(model, which))


def nan_in_weight(model: Any, which: int) -> set[str]:
    return nan(model, weights(model)[which])


def nan_in_table(model: Any, op: str) -> set[str]:
    """Puts it into the rotary table that the first op of a type reads as a constant."""
    known = {each.name for each in model.graph.initializer if len(each.dims) in (1, 4)}
    tables = [set(node.input) & known for node in model.graph.node if node.op_type == op]
    return nan(model, next(min(found) for found in tables if found and "norm" not in min(found)))


PLANTS: tuple[tuple[str, str, Callable[[Any, Any], set[str]], Any], ...] = (
    *(("decoder", "one element", one_element, which) for which in (1, 3, 5)),
    *(("model", "one element", one_element, which) for which in (0, 4, 6)),
    *(("decoder", "transposed", transposed, which) for which in (0, 2, 3)),
    *(("model", "transposed", transposed, which) for which in (1, 2, 3)),
    *(("decoder", "epsilon", epsilon, which) for which in (0, 1)),
    *(("model", "epsilon", epsilon, which) for which in (1, 2)),
    ("decoder", "scale", scale, "FusedMatMul"),
    ("model", "scale", scale, "QuickGelu"),
    *(("decoder", "float16", float16, result) for result in ("val_75", "mul_4", "add_4")),
    *(("model", "float16", float16, result) for result in ("node_add_5", "silu", "linear_2")),
    ("decoder", "nan", nan_in_norm, 0),
    ("decoder", "nan", nan_in_weight, 6),
    ("decoder", "nan", nan_in_table, "Mul"),
    ("model", "nan", nan_in_norm, 1),
    ("model", "nan", nan_in_norm, 2),
    ("model", "nan", nan_in_table, "Mul"),
)


def left_model(part: str, against: str) -> Any:
    return optimised(part, LENGTH, SMALL) if against == "itself" else exported(part, LENGTH, True, SMALL)


@cache
def counterparts(part: str, against: str) -> dict[str, set[str]]:
    """Returns for each result and initializer of the optimised model what has its values in the left one."""
    left, right = left_model(part, against), optimised(part, LENGTH, SMALL)
    inputs = inputs_of(part, LENGTH, SMALL)
    found = truth(results_of(left, inputs), results_of(right, inputs))
    return found | truth(constants_of(left), constants_of(right))


def origins(model: Any, names: AbstractSet[str]) -> set[str]:
    """Returns the parameters of which the exporter made constants, as it notes beside them."""
    noted = (
        (value.name, prop.value)
        for value in model.graph.value_info
        for prop in value.metadata_props
        if prop.key == "pkg.onnxscript.optimizer.folded_from"
    )
    return {origin for name, origin_list in noted if name in names for origin in literal_eval(origin_list)}


def inside(model: Any, other: Any, names: AbstractSet[str]) -> set[str]:
    """Returns results that a fused op of the other model has within: read by the named ones only, and not there."""
    there = {name for node in other.graph.node for name in node.output}
    outer = {name for node in model.graph.node if not names & set(node.output) for name in node.input}
    read = {name for node in model.graph.node if names & set(node.output) for name in node.input}
    results = {name for node in model.graph.node for name in node.output}
    return (read & results) - outer - there


def planted(against: str = "itself") -> Iterator[Planted]:
    """Yields the faults, each in a copy of the onnxruntime-optimised model.

    The left model is that one without the fault, or, with `against="exported"`, what onnxruntime optimised: another
    graph with other names, of which those with the same values are places, too.
    """
    import onnx

    if against not in ("itself", "exported"):
        raise ValueError(f"against is {against!r}; it is 'itself' or 'exported'.")
    for part, kind, plant, which in PLANTS:
        model = onnx.ModelProto()
        model.CopyFrom(optimised(part, LENGTH, SMALL))
        right = frozenset(plant(model, which))
        left = {other for name in right for other in counterparts(part, against).get(name, ())}
        left |= origins(left_model(part, against), left)
        left |= inside(left_model(part, against), model, left) if kind == "scale" else set()
        inputs = inputs_of(part, LENGTH, SMALL)
        yield Planted(f"{part} {kind} {which}", kind, left_model(part, against), model, inputs, frozenset(left), right)
