"""Memory by kind, and the phases of a step."""

import pandas as pd

import nbkit
from nbkit.analysis.cost.memory_by_kind import memory_by_kind, phase_spans
from nbkit.schema.cost import STORAGE_KINDS
from tests.support.costs import layers
from tests.support.fakes import make_ops


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
