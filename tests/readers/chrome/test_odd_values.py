"""A field of another kind, or a number that 64 signed bits do not hold, costs one event and never the file."""

import pytest

import nbkit
from tests.readers.cuda_trace import device, runtime
from tests.readers.exports import slice_, written

OPS = [slice_("cpu_op", f"aten::op{number}", 10.0 * number, 5.0, External_id=number + 1) for number in range(3)]
NOT_TIMED = "ends that were not recorded: these events count with a time of 0"
NO_EVENT = "events without a name, a time or a thread"
SIZES = "sizes of collectives whose number of elements or dtype is none that is known"
NUMBERS = "numbers of another kind, or too large, which are taken as unknown"


def loaded(tmp_path, *events):
    return nbkit.load(written(tmp_path / "t.json", [*OPS, *events]))


@pytest.mark.parametrize(
    ("field", "value", "skipped"),
    [
        ("name", 12, {NO_EVENT: 1}),
        ("name", None, {NO_EVENT: 1}),
        ("cat", ["cpu_op"], {NO_EVENT: 1}),
        ("tid", [1], {NO_EVENT: 1}),
        ("ts", True, {NO_EVENT: 1}),
        ("ts", 1e300, {NO_EVENT: 1}),
        ("ts", "soon", {NO_EVENT: 1}),
        ("ts", "", {NO_EVENT: 1}),
        ("dur", 9223372036854775.807, {NOT_TIMED: 1}),
        ("dur", -9223372036854775.808, {NOT_TIMED: 1}),
        ("dur", -1, {NOT_TIMED: 1}),
        ("dur", float("nan"), {NOT_TIMED: 1}),
        ("dur", None, {NOT_TIMED: 1}),
        ("dur", {}, {NOT_TIMED: 1}),
        ("args", [1], {"arguments of events that are no object": 1}),
        ("args", 0, {"arguments of events that are no object": 1}),
        ("args", None, {}),
        ("args", {"External id": 0.5}, {NUMBERS: 1}),
        ("args", {"External id": "128.0"}, {}),
        ("args", {"Collective name": "c", "In msg nelems": 8, "dtype": "Odd"}, {SIZES: 1}),
        ("args", {"Collective name": "c", "In msg nelems": 8, "dtype": "Float"}, {}),
        ("args", {"External id": "none", "flops": 1 << 63}, {NUMBERS: 2}),
        ("args", {"External id": (1 << 64) - 1}, {}),
        ("name", "half of a pair: \ud800", {}),
        ("tid", 1 << 63, {}),
    ],
)
def test_one_odd_field_costs_one_event_at_most(tmp_path, field, value, skipped):
    trace = loaded(tmp_path, {**slice_("cpu_op", "aten::odd", 40.0, 5.0), field: value})
    assert trace.meta["skipped"] == skipped
    assert len(trace.ops) == (3 if NO_EVENT in skipped else 4)
    assert trace.ops["total_time_us"].sum() == 15.0 + (0.0 if skipped.keys() & {NO_EVENT, NOT_TIMED} else 5.0)


def test_a_device_of_no_number_is_counted(tmp_path):
    odd = device("kernel", "gemm", 70.0, 8.0, stream=7)
    trace = loaded(tmp_path, {**odd, "args": {**odd["args"], "device": "first"}})
    assert trace.meta["skipped"] == {NUMBERS: 1}


@pytest.mark.parametrize("head", [{"ts": 900.0}, {"id": 2}])
def test_an_arrow_that_leads_nowhere_is_counted(tmp_path, head):
    node = slice_("cpu_op", "autograd::engine::evaluate_function: AddBackward0", 100.0, 5.0)
    arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": node["pid"], "tid": node["tid"]}
    ends = {**arrow, "ph": "s", "ts": 10.0}, {**arrow, "ph": "f", "bp": "e", "ts": 100.0}
    assert loaded(tmp_path, node, *ends).meta["skipped"] == {}
    lost = loaded(tmp_path, node, ends[0], {**ends[1], **head}).meta["skipped"]
    assert lost == {"arrows to backward ops that lack an op at one end": 1}


@pytest.mark.parametrize("correlation", [1 << 63, (1 << 64) - 1])
def test_unsigned_ids_link_kernels(tmp_path, correlation):
    trace = loaded(
        tmp_path,
        slice_("cpu_op", "aten::mm", 40.0, 20.0, External_id=correlation),
        runtime("cudaLaunchKernel", 45.0, 5.0, correlation, correlation),
        device("kernel", "gemm", 70.0, 8.0, stream=7, correlation=correlation, External_id=correlation),
        device("kernel", "other", 80.0, 2.0, stream=7, correlation=correlation - 1),
    )
    assert trace.ops.set_index("op")["self_device_time_us"].dropna().to_dict()["aten.mm"] == 8.0
    assert trace.meta["skipped"] == {}


def test_unsigned_addresses_tell_allocations_apart(tmp_path):
    def moved(start, size, address):
        args = {"Bytes": size, "Addr": address, "Device Type": 1, "Device Id": 0, "Total Allocated": 8}
        return {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": start, "args": args}

    high = (1 << 64) - 512
    trace = loaded(tmp_path, moved(1.0, 8, high), moved(2.0, 8, high + 256), moved(3.0, -8, high), moved(4.0, 1e99, 1))
    assert trace.memory["allocation_id"].tolist() == [0, 1, 0]
    assert trace.meta["skipped"] == {NO_EVENT: 1}
