"""The tables of a difference of two traces."""

from nbkit.analysis.time.compare_times import compare_times
from nbkit.schema import DIFFS
from nbkit.views.sections.difference import count_difference_sections, time_difference_sections
from tests.analysis.repeated import nested
from tests.support.fakes import make_ops, make_tensors, make_trace, small_trace


def test_shapes_and_dtypes_are_told_where_the_calls_are_equal():
    ops = make_ops({"op": "aten.mm.default"}, {"op": "aten.add.Tensor"})
    tensors = make_tensors((0, "output", 0), (1, "output", 1))
    other = tensors.assign(dtype=["float32", "bfloat16"])
    (section,) = count_difference_sections(make_trace(ops, tensors), make_trace(ops, other), 5)
    assert section.title == "Shapes and dtypes that differ"
    place = "in outside modules, forward"
    assert section.texts() == [
        [f"aten.add.Tensor output 0 float32 [2, 8] {place}", "1", "0"],
        [f"aten.add.Tensor output 0 bfloat16 [2, 8] {place}", "0", "1"],
    ]


def test_modules_and_long_tables():
    left, right = small_trace(), small_trace()
    right.frames["modules"] = right.modules.assign(params=right.modules["params"] + 1)
    (section,) = count_difference_sections(left, right, 2)
    assert section.title == "Modules that differ"
    assert (len(section.texts()), section.caption) == (2, f"and {2 * len(left.modules) - 2} more")
    counts = {int(count) for trace in (left, right) for count in trace.modules["params"]}
    assert all(any(f" {count:,} parameters in " in row[0] for count in counts) for row in section.texts())


def test_times_beyond_noise_come_with_their_noise():
    times = compare_times(nested(1), nested(2, slow="blocks.3", by=2.0))
    (section,) = time_difference_sections(times, 5)
    assert [row[:2] for row in section.texts()] == [["blocks.3, forward", "slower"]]
    assert section.texts()[0][4].startswith("+")
    assert time_difference_sections(compare_times(nested(1), nested(2)), 5) == []


def test_verdicts_are_compared_where_both_traces_have_some():
    left, right = small_trace(), small_trace()
    diffs = DIFFS.frame().reindex(range(1))
    right.frames["diffs"] = diffs.assign(op="aten.mm.default", module="", phase="forward", status="mismatch")
    assert count_difference_sections(left, right, 5) == []
    left.frames["diffs"] = right.frames["diffs"].assign(status="ok")
    (section,) = count_difference_sections(left, right, 5)
    assert (section.title, len(section.texts())) == ("Verdicts that differ", 2)
