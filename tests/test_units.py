"""Numbers for the eye."""

import pandas as pd
import pytest

from nbkit import units


@pytest.mark.parametrize(
    ("value_us", "text"),
    [
        (0.0, "0 µs"), (0.5, "0.50 µs"), (12.345, "12.3 µs"), (999.4, "999 µs"), (999.6, "1.00 ms"),
        (99.96, "100 µs"), (1_234_567.0, "1.23 s"), (float("nan"), "—"), (None, "—"),
    ],
)  # fmt: skip
def test_duration(value_us: float | None, text: str) -> None:
    assert units.duration(value_us) == text


def test_change_has_a_sign() -> None:
    assert [units.change(value_us) for value_us in (1500.0, -20.0, 0.0, None)] == ["+1.50 ms", "−20.0 µs", "0 µs", "—"]


def test_sizes_flops_counts_and_shares() -> None:
    assert units.data_size(512) == "512 B"
    assert units.data_size(1.5 * 2**20) == "1.50 MiB"
    assert units.flops(2.5e9) == "2.50 GFLOP"
    assert units.flops(999_900) == "1.00 MFLOP"
    assert units.count(12345) == "12,345"
    assert units.share(0.1234) == "12.3 %"
    assert [units.data_size(None), units.flops(float("nan")), units.exact_flops(None), units.share(None)] == ["—"] * 4


def test_statistics_name_infinities() -> None:
    values = (0.123456, float("inf"), float("-inf"), float("nan"))
    assert [units.statistic(value) for value in values] == ["0.1235", "inf", "-inf", "—"]


def test_one_thing_has_no_plural() -> None:
    assert units.counted(1, "op") == "1 op"
    assert units.counted(1200, "op") == "1,200 ops"


@pytest.mark.parametrize(("value", "is_null"), [(None, True), (float("nan"), True), (pd.NA, True), (0, False)])
def test_null(value: object, is_null: bool) -> None:
    assert units.is_null(value) is is_null


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("24 GiB", 24 * 2**30),
        ("80GB", 80 * 10**9),
        ("1.5 kib", 1536),
        ("12", 12),
        (7, 7),
        (2.0, 2),
        (1e10, 10**10),
        (" 3 TB ", 3 * 10**12),
    ],
)
def test_a_size_is_read(size, expected):
    assert units.bytes_of(size) == expected


def test_sizes_and_flops_with_two_decimals():
    sizes = (4_841_472, 924_844, 1023, 1024, 0, -4096)
    assert [units.exact_size(size) for size in sizes] == [
        "4.62 MiB", "903.17 KiB", "1023 B", "1.00 KiB", "0 B", "-4.00 KiB"
    ]  # fmt: skip
    flops = (924_844_032, 10**9, 10**9 + 1, 6_144, 1_000, 0, None)
    assert [units.exact_flops(count) for count in flops] == [
        "924.84 M", "1000.00 M", "1.00 G", "6.14 k", "1000", "0", "—"
    ]  # fmt: skip
