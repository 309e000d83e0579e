"""The peak of memory and who holds it."""

import pandas as pd
import pytest

from nbkit.analysis.time.memory import held_at_peak, live_at_peak, memory_peaks
from nbkit.errors import OptionError
from nbkit.schema import MEMORY
from tests.support.fakes import make_ops

OPS = make_ops({"op": "aten.mm.default", "module": "fc", "source": "train.py:1"}, {"op": "aten.relu.default"})


def memory(*events: tuple[int | None, int, int | None, int | None], device: str = "cpu") -> pd.DataFrame:
    """Events (op_id, delta, allocated, allocation_id), one every 10 us."""
    names = ("op_id", "delta_bytes", "allocated_bytes", "allocation_id")
    rows = [
        {**dict(zip(names, event, strict=True)), "time_us": 10.0 * number, "device": device}
        for number, event in enumerate(events)
    ]
    return MEMORY.frame(rows)


def grown() -> pd.DataFrame:
    """50 bytes from before; 100 by mm, 30 by relu, freed again, 60 by mm: a peak of 210 at 30 us; then mm's 100 go."""
    return memory(
        (0, 100, 150, 0),
        (1, 30, 180, 1),
        (1, -30, 150, 1),
        (0, 60, 210, 2),
        (None, -100, 110, 0),
        (None, -50, 60, None),
    )


def test_the_peak_is_the_first_highest_value_of_each_device() -> None:
    both = pd.concat([grown(), memory((1, 7, 7, 3), (1, -7, 0, 3), (1, 7, 7, 4), device="cuda:0")], ignore_index=True)
    peaks = memory_peaks(both)
    assert peaks.to_numpy().tolist() == [["cpu", 210, 30.0, 0], ["cuda:0", 7, 0.0, 1]]


def test_live_at_the_peak_are_allocations_not_freed_before_it() -> None:
    live = live_at_peak(grown(), OPS)
    assert live["allocation_id"].tolist() == [0, 2]
    assert live["size_bytes"].tolist() == [100, 60]
    assert live["freed_us"].fillna(-1).tolist() == [40.0, -1.0]
    assert live["op"].tolist() == ["aten.mm.default"] * 2
    assert live["source"].tolist() == ["train.py:1"] * 2


def test_holders_sum_to_the_peak_with_what_was_there_before() -> None:
    held = held_at_peak(grown(), OPS)
    assert held["op"].fillna("-").tolist() == ["aten.mm.default", "-"]
    assert held["module"].fillna("-").tolist() == ["fc", "-"]
    assert held[["allocations", "held_bytes"]].to_numpy().tolist() == [[2, 160], [0, 50]]
    assert held["held_fraction"].tolist() == [160 / 210, 50 / 210]
    assert held_at_peak(grown(), OPS, by=["phase"])["phase"].fillna("-").tolist() == ["forward", "-"]
    assert held_at_peak(grown(), OPS, by=["source"])["source"].fillna("-").tolist() == ["train.py:1", "-"]


def test_without_the_allocators_own_count_events_are_summed() -> None:
    frame = memory((0, 100, None, 0), (None, 20, None, 1), (1, -100, None, 0))
    assert memory_peaks(frame)["peak_bytes"].tolist() == [120]
    assert live_at_peak(frame, OPS)["op"].fillna("-").tolist() == ["aten.mm.default", "-"]
    assert held_at_peak(frame, OPS)["held_fraction"].sum() == 1.0


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("op", r"by must be a list of names, such as \['module'\], got 'op'"),
        (["modul"], "names 'modul', which no allocation has; did you mean 'module'"),
    ],
)
def test_other_owners_are_refused(by, message) -> None:
    with pytest.raises(OptionError, match=message):
        held_at_peak(grown(), OPS, by=by)


def test_no_events_have_no_peak() -> None:
    assert len(memory_peaks(MEMORY.frame())) == len(live_at_peak(MEMORY.frame(), OPS)) == 0
    assert len(held_at_peak(MEMORY.frame(), OPS)) == 0
