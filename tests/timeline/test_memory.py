from nbkit.schema import MEMORY as TABLE
from nbkit.timeline import timeline
from tests.timeline.makers import MEMORY, events


def allocation(at, size, address, device="cpu", total=-1):
    row = {"name": "[memory]", "kind": MEMORY, "start": at, "end": at, "size_bytes": size, "address": address}
    return row | {"device": device, "allocated_bytes": total}


def test_allocations_have_their_op_and_their_free():
    op = {"name": "aten::empty", "start": 10, "end": 20}
    made = timeline(
        events(op, allocation(15, 64, 1), allocation(30, -64, 1), allocation(40, 32, 1), allocation(50, -8, 2))
    )
    memory = TABLE.check(made.memory)
    assert len(made.ops) == 1
    assert memory["op_id"].tolist()[0] == 0
    assert memory["op_id"].isna().tolist() == [False, True, True, True]
    assert memory["time_us"].tolist() == [0.005, 0.02, 0.03, 0.04]
    assert memory["allocation_id"].tolist()[:3] == [0, 0, 1]
    assert memory["allocation_id"].isna().tolist() == [False, False, False, True]
    assert memory["allocated_bytes"].tolist() == [64, 0, 32, 24]


def test_a_device_says_what_is_allocated_on_it():
    rows = [allocation(1, 64, 5, "cuda:0", 164), allocation(2, 8, 5), allocation(3, -64, 5, "cuda:0", 100)]
    memory = timeline(events({"name": "step", "start": 0, "end": 9}, *rows)).memory
    assert memory["allocated_bytes"].tolist() == [164, 8, 100]
    assert memory["allocation_id"].tolist() == [0, 1, 0]
    assert memory["device"].tolist() == ["cuda:0", "cpu", "cuda:0"]


def test_what_is_freed_unseen_shows_when_its_address_is_allocated_again():
    rows = [allocation(1, 64, 5), allocation(2, 8, 6), allocation(3, 32, 5), allocation(4, -32, 5)]
    memory = timeline(events({"name": "step", "start": 0, "end": 9}, *rows)).memory
    assert memory["allocated_bytes"].tolist() == [64, 72, 40, 8]
    assert memory["allocation_id"].tolist() == [0, 1, 2, 2]


def test_without_addresses_every_allocation_is_live():
    rows = [allocation(1, 64, -1), allocation(2, 8, -1), allocation(3, -8, -1)]
    memory = timeline(events({"name": "step", "start": 0, "end": 9}, *rows)).memory
    assert memory["allocated_bytes"].tolist() == [64, 72, 64]
    assert memory["allocation_id"].isna().tolist() == [False, False, True]
