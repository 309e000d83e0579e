"""Groups of rows beside those of pandas; a report's executor answers as the kernel's in tests/views."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from nbkit.analysis.query import groups as grouping
from nbkit.analysis.query.encoded import Columns, encode_frame
from nbkit.analysis.query.groups import Grouping, keys_of
from nbkit.analysis.query.listing import Listing, groups_listed, opened
from nbkit.analysis.query.matches import Query
from nbkit.errors import OptionError

NAMES = ["op", "module", "phase", "time", "bytes"]
TOTALS = {"time": "sum", "bytes": "max"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    count = 2000
    texts = {
        "op": generator.choice(["mm", "add", "mul", None], count, p=[0.5, 0.3, 0.15, 0.05]),
        "module": generator.choice(["", "a.0", "a.1", "a.2", "b", "c", "d"], count),
        "phase": generator.choice(["forward", "backward"], count),
    }
    time = np.where(generator.random(count) < 0.1, np.nan, generator.exponential(100, count))
    return pd.DataFrame({**texts, "time": time, "bytes": generator.integers(0, 9, count)}).astype(
        dict.fromkeys(texts, "str")
    )


@pytest.fixture(scope="module")
def columns(frame: pd.DataFrame) -> Columns:
    return encode_frame(frame)


def grouped(columns: Columns, by: list[str], query: dict[str, Any] | None = None, **group: Any) -> Listing:
    asked = Query(**(query or {}), group={"by": by, "totals": TOTALS, "spread": "time", **group})
    return opened(columns, asked, groups_listed(columns, asked, NAMES))


def shown(listing: Listing) -> pd.DataFrame:
    """The groups as a frame."""
    assert listing.groups is not None
    made = listing.groups.columns
    texts = {name: [column.text_at(row) for row in range(len(made))] for name, column in made.texts.items()}
    return pd.DataFrame({**texts, **made.numbers})


@pytest.mark.parametrize("by", [["op"], ["module"], ["op", "phase"], ["module", "op"]])
def test_sums_and_spread_are_those_of_pandas(frame: pd.DataFrame, columns: Columns, by: list[str]) -> None:
    found = shown(grouped(columns, by))
    groups = frame.groupby(by, dropna=False, sort=False)
    wanted = groups.agg(
        calls=("time", "size"), time=("time", "sum"), bytes=("bytes", "max"), min=("time", "min"),
        median=("time", "median"), max=("time", "max"),
    ).reset_index()  # fmt: skip
    names = ["calls", "time", "bytes", "min", "median", "max"]
    pd.testing.assert_frame_equal(found[names], wanted[names], check_dtype=False)
    assert found[by[0]].fillna("").tolist() == wanted[by[0]].fillna("").tolist()


def test_a_group_says_what_its_rows_have_in_common(frame: pd.DataFrame, columns: Columns) -> None:
    found = shown(grouped(columns, ["op"]))
    assert set(found["phase"]) == {"forward, backward", "backward, forward"} & set(found["phase"])
    assert set(found["module"]) == {"7 different"}
    assert shown(grouped(columns, ["module", "phase"]))["phase"].isin(["forward", "backward"]).all()


@pytest.mark.parametrize("flags", [0, grouping.FLAGS])
def test_what_rows_have_in_common_is_told_without_flags_for_each_pair_too(
    monkeypatch: pytest.MonkeyPatch, flags: int
) -> None:
    monkeypatch.setattr(grouping, "FLAGS", flags)
    codes, groups = np.array([0, 1, 0, 1, -1, 1, -1]), np.array([0, 0, 0, 1, 1, 1, 2])
    found = grouping.common_texts(pd.Series(["a", "b"]), codes, groups, 3)
    assert [None if code < 0 else found.values[code] for code in found.codes] == ["a, b", "b", None]


def test_groups_sort_by_their_own_columns_and_rows_inside_by_theirs(frame: pd.DataFrame, columns: Columns) -> None:
    listing = grouped(columns, ["op"], {"sort": [{"column": "time", "descending": True}]}, open=[0])
    assert listing.groups is not None
    assert (np.diff(listing.groups.columns.numbers["time"]) <= 0).all()
    rows = listing.ids[listing.ids >= 0]
    inside = frame["time"].iloc[rows]
    assert frame["op"].iloc[rows].nunique(dropna=False) == 1
    assert len(rows) == (frame["op"].fillna("?") == str(frame["op"].fillna("?").iloc[0])).sum()
    assert inside.dropna().is_monotonic_decreasing
    by_median = grouped(columns, ["op"], {"sort": [{"column": "median"}]})
    assert by_median.groups is not None
    assert (np.diff(by_median.groups.columns.numbers["median"]) >= 0).all()


def test_the_spread_of_instances_is_that_of_their_sums(frame: pd.DataFrame, columns: Columns) -> None:
    found = shown(grouped(columns, ["phase"], each=["module"]))
    sums = (
        frame.dropna(subset="time").groupby(["phase", "module"], sort=False)["time"].sum().groupby("phase", sort=False)
    )
    wanted = sums.agg(["size", "min", "median", "max"]).loc[found["phase"]].to_numpy(float)
    np.testing.assert_allclose(found[["instances", "min", "median", "max"]].to_numpy(float), wanted)


def test_rows_are_counted_among_all_though_a_filter_leaves_some_out(frame: pd.DataFrame, columns: Columns) -> None:
    forward = [{"column": "phase", "op": "equals", "value": "forward"}]
    found = shown(grouped(columns, ["op"], {"predicates": forward}, among=["op"]))
    ops = frame["op"].fillna("?")
    assert found["of"].tolist() == [(ops == op).sum() for op in found["op"].fillna("?")]
    assert found["calls"].tolist() == [
        ((ops == op) & (frame["phase"] == "forward")).sum() for op in found["op"].fillna("?")
    ]


def test_a_group_stays_open_under_a_filter_that_leaves_out_the_row_that_opened_it(
    frame: pd.DataFrame, columns: Columns
) -> None:
    row = int(np.flatnonzero((frame["op"] == "mm") & (frame["phase"] == "backward"))[0])
    forward = [{"column": "phase", "op": "equals", "value": "forward"}]
    listing = grouped(columns, ["op"], {"predicates": forward}, open=[row, 10**6])
    rows = listing.ids[listing.ids >= 0]
    assert sorted(rows) == np.flatnonzero((frame["op"] == "mm") & (frame["phase"] == "forward")).tolist()


def test_a_row_in_a_closed_group_is_found_with_its_group(columns: Columns) -> None:
    listing = grouped(columns, ["op"])
    assert listing.groups is not None
    keys = keys_of(columns, ["op"])
    assert listing.position(1999) is None
    closed = listing.closed_around(1999, keys)
    assert closed is not None
    assert keys[closed] == keys[1999]
    found = grouped(columns, ["op"], open=[closed])
    assert found.position(1999) is not None


def test_no_rows_have_no_groups(columns: Columns) -> None:
    nothing = [{"column": "op", "op": "equals", "value": "none of them"}]
    assert len(grouped(columns, ["op"], {"predicates": nothing}, open=[0], each=["module"], among=["op"])) == 0


def test_many_columns_do_not_run_out_of_numbers(columns: Columns) -> None:
    keys = keys_of(columns, ["op", "module", "phase"] * 12)
    assert len(np.unique(keys)) == len(np.unique(keys_of(columns, ["op", "module", "phase"])))


def test_what_cannot_be_grouped_by_is_said(columns: Columns) -> None:
    with pytest.raises(OptionError, match="The table has no texts 'time' to group by"):
        grouped(columns, ["time"])
    with pytest.raises(OptionError, match="Groups know no 'mean' of time"):
        groups_listed(columns, Query(group=vars(Grouping(["op"], {"time": "mean"}))), NAMES)
