"""Numbers read the same in the report's JavaScript as in Python."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nbkit.views.diff_table.rows import number
from nbkit.views.summary import units
from tests.views.report.both_sides import by_node

FORMATS: dict[str, Callable[[float], Any]] = {
    "duration": units.duration,
    "change": units.change,
    "data_size": units.data_size,
    "flops": units.flops,
    "share": units.share,
    "count": units.count,
    "fixed": lambda value: f"{value:.1f}",
    "metric": number,
    "statistic": units.statistic,
    "rounded": lambda value: round(value, 4),
}


def values(count: int = 4000) -> list[float]:
    """Numbers of all sizes, many of them exactly between two that can be written."""
    draw = np.random.default_rng(0)
    middles = draw.integers(0, 1 << 20, count) / 2.0 ** draw.integers(0, 14, count)
    sizes = 10.0 ** draw.uniform(-12, 18, count)
    edges = [
        0.0,
        0.0005,
        0.9994,
        0.9995,
        9.994,
        9.995,
        99.95,
        999.4,
        999.5,
        999.6,
        1023.0,
        1023.5,
        2.0**40,
        1e21,
        5e-324,
    ]
    found = [*edges, *middles.tolist(), *sizes.tolist(), *np.rint(sizes).tolist(), *(sizes.round(2)).tolist()]
    return [*found, *(-value for value in found[: count // 4])]


def test_every_format_is_pythons() -> None:
    asked = {name: values() for name in FORMATS}
    for name, texts in by_node("format.js", asked).items():
        wanted = [FORMATS[name](value) for value in asked[name]]
        # JSON of JavaScript writes 1.0 as 1.
        made = texts if name != "rounded" else [float(text) for text in texts]
        assert [pair for pair in zip(made, wanted, strict=True) if pair[0] != pair[1]] == [], name
