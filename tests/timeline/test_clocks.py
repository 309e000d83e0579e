"""Clocks are brought together by what no rank leaves before all have come, and no further than that tells."""

import numpy as np
import pandas as pd
import pytest

from nbkit.schema import COLLECTIVES
from nbkit.timeline.arrivals import arrivals
from nbkit.timeline.clocks import clock_offsets, meetings


def job_of(offsets_us, calls=200, hosts=None, groups=None, seed=0, op="all_reduce"):
    """Ranks, collectives, and when each call began on its rank's clock, for ranks that come up to 0.3 ms apart."""
    drawn = np.random.default_rng(seed)
    rows, begin_us = [], []
    for group in groups or [range(len(offsets_us))]:
        for seq in range(calls):
            came = 1000.0 * seq + drawn.uniform(0, 300, len(offsets_us))
            last = max(came[rank] for rank in group)
            for rank in group:
                end = last + drawn.uniform(20, 60)
                times = {"start_us": came[rank], "duration_us": end - came[rank]}
                rows.append({"rank": rank, "op": op, "group": str([*group]), "seq": seq, "is_p2p": False, **times})
                begin_us.append(came[rank] + offsets_us[rank])
    ranks = pd.DataFrame({"rank": range(len(offsets_us)), "host": hosts or [f"h{i}" for i in range(len(offsets_us))]})
    return ranks, COLLECTIVES.frame(rows), np.array(begin_us)


@pytest.mark.parametrize("seed", range(5))
def test_offsets_are_within_the_error_that_is_told(seed):
    truth = np.array([0.0, 1e6, -345.0, 2e9])
    ranks, collectives, begin_us = job_of(truth, seed=seed)
    found = clock_offsets(ranks, meetings(collectives, begin_us))
    off = np.abs(found["offset_us"] - (truth - truth[0]))
    assert (off <= found["error_us"] + 1e-3).all()
    assert found["error_us"].max() < 60 and found["error_us"][0] == 0


def test_ranks_of_one_host_have_one_clock_and_its_offset_is_told_by_all_of_them():
    ranks, collectives, begin_us = job_of([0.0, 0.0, 500.0, 500.0], hosts=["a", "a", "b", "b"])
    found = clock_offsets(ranks, meetings(collectives, begin_us))
    assert found["offset_us"][:2].tolist() == [0, 0] and found["error_us"][:2].tolist() == [0, 0]
    assert found["offset_us"][2] == found["offset_us"][3] == pytest.approx(500, abs=found["error_us"][2])


def test_a_host_that_the_first_never_meets_is_told_by_way_of_a_third():
    ranks, collectives, begin_us = job_of([0.0, 300.0, 900.0], groups=[(0, 1), (1, 2)])
    found = clock_offsets(ranks, meetings(collectives, begin_us))
    assert found["offset_us"][2] == pytest.approx(900, abs=found["error_us"][2])
    assert found["error_us"][2] > found["error_us"][1]


@pytest.mark.parametrize(
    "change",
    [{"seq": pd.array([pd.NA] * 400, dtype="Int64")}, {"duration_us": np.nan}, {"op": "broadcast"}, {"is_p2p": True}],
)
def test_what_tells_nothing_of_clocks_leaves_them_unknown(change):
    ranks, collectives, begin_us = job_of([0.0, 300.0])
    found = clock_offsets(ranks, meetings(COLLECTIVES.check(collectives.assign(**change)), begin_us))
    assert found["offset_us"].isna().tolist() == [False, True] == found["error_us"].isna().tolist()


def test_an_arrival_is_late_by_what_the_clocks_cannot_explain():
    ranks, collectives, begin_us = job_of([0.0, 300.0], calls=100)
    met = meetings(collectives, begin_us)
    clocks = clock_offsets(ranks, met)
    came = arrivals(met, clocks)
    true = collectives["start_us"].to_numpy().reshape(-1, 2)
    ahead = (true.max(axis=1)[:, None] - true).ravel()
    assert (came["waited_us"].to_numpy() <= ahead + 1e-6).all()
    assert (came["waited_us"].to_numpy() >= ahead - 2 * clocks["error_us"].max() - 1e-6).all()


def test_without_ranks_or_collectives_nothing_is_known():
    ranks, collectives, _ = job_of([0.0, 1.0])
    none = meetings(collectives[:0], np.empty(0))
    assert clock_offsets(ranks, none)["offset_us"].isna().tolist() == [False, True]
    assert len(arrivals(none, clock_offsets(ranks, none))) == 0


def test_what_a_handshake_measured_narrows_the_bounds():
    ranks, collectives, begin_us = job_of([0.0, 300.0, 300.0], hosts=["a", "b", "b"])
    met = meetings(collectives, begin_us)
    measured = ranks.assign(clock_offset_us=[0.0, 302.0, 299.0], clock_error_us=[0.0, 4.0, 5.0])
    found = clock_offsets(measured, met)
    assert found["error_us"][1] < clock_offsets(ranks, met)["error_us"][1]
    assert found["offset_us"][1] == found["offset_us"][2] == pytest.approx(300, abs=found["error_us"][1] + 1e-6)
    # It is enough by itself, also where rank 0 is not among those that are there.
    alone = clock_offsets(measured[1:].assign(host=["b", "c"]).reset_index(drop=True), met[:0])
    assert alone["offset_us"].tolist() == [0.0, pytest.approx(-3.0)] and alone["error_us"][1] == pytest.approx(9.0)


def test_ranks_of_one_host_come_late_also_where_no_end_is_known():
    ranks, collectives, begin_us = job_of([0.0, 0.0], calls=5, hosts=["a", "a"])
    met = meetings(collectives.assign(duration_us=np.nan), begin_us)
    came = arrivals(met, clock_offsets(ranks, met))
    assert len(came) == 10 and came["late_us"].max() > 0
