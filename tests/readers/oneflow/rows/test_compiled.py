from tests.readers.oneflow import logs
from tests.readers.oneflow.frames import attributes, nodes_of


def test_an_op_that_was_not_traced_and_whose_name_tells_no_reason_is_of_a_pass(tmp_path):
    listing = logs.listing()
    listing.insert(-1, logs.operator("model.fc-fused-9", ["reduce_sum-1/out_0|"], ["model.fc-fused-9/out_0|"]))
    nodes = nodes_of(logs.read(tmp_path, logs.text([*logs.built(), listing])), "Net_0 compiled")
    inserted = nodes.set_index("name")["inserted"]
    assert inserted["model.fc-fused-9"] == "pass"
    assert inserted[["model.fc.weight", "reduce_sum-1"]].isna().all()


def test_an_op_that_a_pass_made_for_another_one_is_of_its_phase_and_not_of_its_readers(tmp_path):
    product, cast = "model.fc-matmul-0/out_0|8, 2|float16", "model.fc-matmul-0-out_0-cast_h2f"
    listing = [line.replace(f";{product}", f";{cast}/out_0|8, 2") for line in logs.listing()]
    listing.insert(-1, logs.operator(cast, [product], [f"{cast}/out_0|8, 2"]))
    nodes = nodes_of(logs.read(tmp_path, logs.text([*logs.built(), listing])), "Net_0 compiled")
    phases = nodes.set_index("name")["phase"]
    assert phases[["model.fc-matmul-0", cast, "model.fc-add_n-3"]].tolist() == ["forward", "forward", "backward"]


def test_an_addition_that_the_op_before_it_makes_is_a_hidden_input(tmp_path):
    product, other = "model.fc-matmul-0/out_0", "ones_like-2/out_0"
    addition = logs.op("add_n-8", logs.user("add_n", {"in": [product, other]}, {"out": ["add_n-8/out_0"]}))
    reader = logs.op("relu-9", logs.user("relu", {"x": ["add_n-8/out_0"]}, {"y": ["relu-9/y_0"]}))
    *built, done = logs.built()
    listing = logs.listing()
    listing.insert(-1, logs.operator("relu-9", [f"{product}|8, 2|float16"], ["relu-9/y_0|8, 2|float16"]))
    trace = logs.read(tmp_path, logs.text([*built, addition, reader, done, listing]))
    nodes = nodes_of(trace, "Net_0 compiled")
    hidden = {
        name: one["hidden_inputs"]
        for name, one in zip(nodes["name"], attributes(nodes), strict=True)
        if "hidden_inputs" in one
    }
    assert hidden == {"model.fc-matmul-0": [{"op": "add_n-8", "tensor": other}]}
    assert trace.meta["oneflow"]["graphs"][0]["hidden_inputs"] == 1
