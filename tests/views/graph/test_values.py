from nbkit.views.graph.values import VALUES

LOOKS = {"isInclusive": False, "isScaled": False, "center": None}


def test_times_are_summed_over_a_part_and_of_errors_the_largest_counts() -> None:
    assert [VALUES[name].outline(name) for name in ("self_time_us", "max_abs_error")] == [
        {"name": "self_time_us", "label": "self time", "format": "duration", "how": "sum", **LOOKS},
        {"name": "max_abs_error", "label": "max abs error", "format": "error", "how": "max", **LOOKS},
    ]
