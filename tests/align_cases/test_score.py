"""The score says right only where every side that is named is named rightly, and wrong where an engine fails."""

import pytest

from tests.align_cases.score import Line, acceptable, judged, main, sides


def divergence(**modules):
    return {side: module and {"module": module} for side, module in modules.items()}


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (None, False),
        (divergence(left=None, right=None), False),
        (divergence(left="a", right="b"), True),
        (divergence(left="a", right=None), True),
        (divergence(left="a", right="c"), False),
        (divergence(left="b", right="a"), False),
    ],
)
def test_every_side_that_is_named_counts(first, expected):
    assert acceptable(first, "module", {"a"}, {"b"}) is expected


def test_the_root_is_the_empty_path():
    assert sides({"left": {"module": None}, "right": {"module": ""}}, "module") == {"left": "", "right": ""}


def test_an_engine_that_fails_is_wrong():
    def judge():
        raise KeyError("left")

    assert judged("case", judge) == Line("case", "failed", "KeyError: 'left'", False)


def test_an_unknown_section_lists_the_known_ones():
    with pytest.raises(SystemExit, match="'port' is no section; there are all, ports, faults"):
        main(["port"])
