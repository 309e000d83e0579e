"""Numbers of Python's text and HTML tables over the cases that they share with the widgets' (widgets/test/shared)."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nbkit import units
from nbkit.views.diff_table.rows import number

CASES = json.loads((Path(__file__).parent / "formats.json").read_text(encoding="utf-8"))
FORMATS: dict[str, Callable[[float], str]] = {
    "duration": units.duration,
    "change": units.change,
    "data_size": units.data_size,
    "flops": units.flops,
    "share": units.share,
    "count": units.count,
    "metric": number,
    "statistic": units.statistic,
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_number_reads_as_in_the_widgets(name: str) -> None:
    assert [[value, FORMATS[name](value)] for value, _ in CASES[name]] == CASES[name]
