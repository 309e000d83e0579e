from tests.readers.oneflow import logs
from tests.readers.oneflow.frames import nodes_of


def test_an_op_that_was_not_traced_and_whose_name_tells_no_reason_is_of_a_pass(tmp_path):
    listing = logs.listing()
    listing.insert(-1, logs.operator("model.fc-fused-9", ["reduce_sum-1/out_0|"], ["model.fc-fused-9/out_0|"]))
    nodes = nodes_of(logs.read(tmp_path, logs.text([*logs.built(), listing])), "Net_0 compiled")
    inserted = nodes.set_index("name")["inserted"]
    assert inserted["model.fc-fused-9"] == "pass"
    assert inserted[["model.fc.weight", "reduce_sum-1"]].isna().all()
