from nbkit.analysis.structure.module_repeats import folded_path, module_repeats
from tests.support.fakes import make_ops


def layer(path, kind="Block", op="aten.mm.default", **others):
    return [
        {"op": kind, "module": path, "level": "module", "model": "Net", "phase": "forward", **others},
        {"op": op, "module": f"{path}.fc", "level": "aten", "model": "Net", "phase": "forward", **others},
    ]


def repeats(*rows):
    return {path: name for (_, path), name in module_repeats(make_ops(*rows)).items()}


def test_equal_layers_share_a_star():
    rows = [row for number in range(12) for row in layer(f"h.{number}")]
    assert repeats(*rows) == {f"h.{number}": "*" for number in range(12)}


def test_layers_of_another_class_or_with_other_ops_or_shapes_end_a_row():
    rows = [*layer("h.0"), *layer("h.1"), *layer("h.2", kind="Last"), *layer("h.3"), *layer("h.4")]
    assert repeats(*rows) == {"h.0": "[0-1]", "h.1": "[0-1]", "h.3": "[3-4]", "h.4": "[3-4]"}
    assert repeats(*layer("h.0"), *layer("h.1", op="aten.bmm.default")) == {}
    assert repeats(*layer("h.0", input_shapes="[[2]]"), *layer("h.1", input_shapes="[[3]]")) == {}


def test_what_the_backward_pass_leaves_out_of_the_first_layer_does_not_part_it():
    backward = {"op": "aten.mm.default", "module": "h.1", "level": "aten", "model": "Net", "phase": "backward"}
    assert repeats(*layer("h.0"), *layer("h.1"), backward) == {"h.0": "*", "h.1": "*"}


def test_layers_in_layers_have_names_of_their_own():
    rows = [row for outer in range(2) for inner in range(3) for row in layer(f"h.{outer}.experts.{inner}")]
    found = repeats(*rows)
    assert found["h.1"] == found["h.1.experts.2"] == "*" and len(found) == 8


def test_layers_of_two_models_are_counted_apart():
    other = [{**row, "model": "Twin"} for row in layer("h.0")]
    assert module_repeats(make_ops(*layer("h.0"), *layer("h.1"), *other)) == {("Net", "h.0"): "*", ("Net", "h.1"): "*"}


def test_no_modules_have_no_repeats():
    assert repeats({"op": "aten.mm.default"}) == {}


def test_a_path_has_what_its_repeated_modules_share_at_every_depth():
    shared = module_repeats(
        make_ops(*(row for outer in range(2) for inner in range(3) for row in layer(f"h.{outer}.e.{inner}")))
    )
    assert folded_path("Net", "h.1.e.2.fc", shared) == "h.*.e.*.fc"
    assert folded_path("Twin", "h.1.e.2.fc", shared) == "h.1.e.2.fc"
    assert folded_path("Net", "", shared) == ""
