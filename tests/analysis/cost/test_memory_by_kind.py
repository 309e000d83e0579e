"""Memory by kind, and the phases of a step."""

import pandas as pd

import nbkit
from nbkit.analysis.cost.memory_by_kind import memory_by_kind, memory_by_lifetime, phase_spans
from nbkit.schema.cost import STORAGE_KINDS
from tests.support.costs import layers
from tests.support.fakes import make_memory, make_ops


def test_the_kinds_add_up_to_what_is_allocated_at_every_event() -> None:
    kinds = memory_by_kind(layers().memory, layers().storages)
    assert (
        kinds[[name for name in STORAGE_KINDS if name in kinds]].sum(axis=1).tolist()
        == kinds["allocated_bytes"].tolist()
    )


def test_the_peak_is_made_of_what_lives_then() -> None:
    trace = layers()
    kinds = memory_by_kind(trace.memory, trace.storages)
    peak = kinds.iloc[int(kinds["allocated_bytes"].to_numpy("int64").argmax())]
    held = nbkit.held_at_peak(trace.memory, trace.ops)["held_bytes"].sum()
    assert peak["allocated_bytes"] == held
    # AdamW keeps two tensors of the size of each parameter, and counts of steps, 4 bytes for each of the ten.
    assert [peak["parameter"], peak["gradient"]] == [4_896, 4_896]
    assert 2 * 4_896 <= peak["optimizer state"] <= 2 * 4_896 + 40


def test_devices_are_counted_apart() -> None:
    trace = layers()
    memory = trace.memory.assign(device=pd.Series(["cuda:0", "cpu"] * len(trace.memory))[: len(trace.memory)])
    memory["allocated_bytes"] = memory.groupby("device")["delta_bytes"].cumsum().astype("Int64")
    kinds = memory_by_kind(memory, trace.storages)
    assert (
        kinds[[name for name in STORAGE_KINDS if name in kinds]].sum(axis=1).tolist()
        == kinds["allocated_bytes"].tolist()
    )


def test_phases_are_spans_and_a_short_one_joins_the_one_before() -> None:
    phases = ["forward"] * 300 + ["other"] + ["backward"] * 200 + ["optimizer"] * 9
    spans = phase_spans(make_ops(*({"op": "mm", "phase": phase} for phase in phases)))
    assert spans.to_numpy().tolist() == [["forward", 0, 300], ["backward", 301, 500], ["optimizer", 501, 509]]
    assert len(phase_spans(make_ops())) == 0


def measured(*rows: tuple[int | None, int, int | None]) -> pd.DataFrame:
    """Events of (op_id, delta_bytes, allocation_id)."""
    memory = make_memory(*((op_id, float(at), delta) for at, (op_id, delta, _) in enumerate(rows)))
    return memory.assign(allocation_id=pd.array([one for *_, one in rows], "Int64"))


def test_memory_of_a_measured_step_is_temporary_where_the_phase_that_allocated_it_frees_it() -> None:
    ops = make_ops({"phase": "forward"}, {"phase": "backward"}, {"phase": "optimizer"}, {"phase": "other"})
    memory = measured((0, 10, 0), (0, 5, 1), (3, -5, 1), (1, 7, 2), (1, -10, 0), (2, 2, 3), (2, -2, 3), (2, 1, 4))
    kinds = memory_by_lifetime(memory, ops)
    assert kinds["kept from forward"].tolist() == [10, 10, 10, 10, 0, 0, 0, 0]
    assert kinds["kept from backward"].tolist() == [0, 0, 0, 7, 7, 7, 7, 7]
    assert kinds["kept from optimizer"].tolist() == [0] * 7 + [1]
    assert kinds["temporary"].tolist() == [0, 5, 0, 0, 0, 2, 0, 0]  # the free by "other" belongs to forward
    assert list(kinds)[3:] == ["kept from forward", "kept from backward", "kept from optimizer", "temporary"]
    assert kinds.iloc[:, 3:].sum(axis=1).tolist() == kinds["allocated_bytes"].tolist()


def test_what_was_held_before_is_what_the_step_frees_of_it_or_what_the_allocator_says() -> None:
    ops = make_ops({"phase": "forward"})
    kinds = memory_by_lifetime(measured((0, -8, None), (0, 3, 0)), ops)
    assert "held before" not in kinds and kinds["kept from forward"].tolist() == [0, 3]
    kinds = memory_by_lifetime(measured((0, 3, 0), (0, -8, None)), ops)
    assert kinds["held before"].tolist() == [8, 0]
    memory = measured((0, 3, 0)).assign(allocated_bytes=pd.array([103], "Int64"))
    assert memory_by_lifetime(memory, ops)["held before"].tolist() == [100]
