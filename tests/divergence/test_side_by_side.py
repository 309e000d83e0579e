"""Tests where the difference of two recorded runs begins, from literal statistics."""

from itertools import zip_longest

import pandas as pd
import pytest

from nbkit.divergence.by_value import aligned_by_value
from nbkit.divergence.runs import run_of
from nbkit.divergence.side_by_side import first_beginning, notes_on, side_by_side
from nbkit.step.step import Step
from tests.support.fakes import make_ops, make_tensors

CALLS = ((0, "input", 0), (0, "output", 1), (1, "input", 1), (1, "output", 2), (2, "input", 2), (2, "output", 3))


def run(norms, ops=("exp", "sin", "tanh"), calls=CALLS, arguments=(), **changes):
    """Makes a run of ops in a chain; `norms` are those of tensors 0, 1, 2 ..."""
    tensors = make_tensors(*calls)
    tensors["norm"] = [norms[number] for number in tensors["tensor_id"]]
    tensors["min"], tensors["max"] = -tensors["norm"], tensors["norm"]
    for name, value in changes.items():
        tensors[name] = value
    rows = ({"op": f"aten.{op}.default", "arguments": text} for op, text in zip_longest(ops, arguments))
    return run_of(Step(make_ops(*rows), tensors))


def compared(left, right):
    found = side_by_side(left, right)
    return list(zip(found["error_class"].fillna("-"), found["origin_id"].fillna(-1).astype(int), strict=True))


def test_equal_runs_are_clean():
    found = side_by_side(run([1.0] * 4), run([1.0] * 4))
    assert set(found["error_class"]) == {"clean"} and set(found["relation"]) == {"same"} and set(found["mark"]) == {"="}
    assert first_beginning(found) is None and notes_on(found) == []


def test_a_difference_begins_once_and_is_propagated_from_there():
    left, right = run([1.0, 1.01, 1.02, 1.03]), run([1.0] * 4)
    assert compared(left, right) == [("local", 0), ("propagated", 0), ("propagated", 0)]
    first = first_beginning(side_by_side(left, right))
    assert (first["op_id"], first["right_op_id"], first["op"]) == (0, 0, "aten.exp.default")
    message = "the statistics of its inputs differ by 0 at most, those of its result by 0.0099: norm 1.01, there 1"
    assert first["message"].startswith(message)


def test_what_differs_from_the_start_is_given():
    left, right = run([1.1, 1.1, 1.1, 1.1]), run([1.0] * 4)
    assert compared(left, right) == [("input", 0), ("propagated", 0), ("propagated", 0)]
    message = side_by_side(left, right)["message"].iloc[0]
    assert message == "input 0 differs, and no recorded op made it: norm 1.1, there 1"


def test_memory_that_was_never_written_is_no_divergence():
    """Ops: empty, a view of it, normal_ on that, exp."""
    calls = ((0, "output", 1), (1, "input", 1), (1, "output", 2), (2, "input", 2), (2, "output", 2))
    memory = pd.array([1] * 6 + [3], dtype="Int64")

    def filled(*norms):
        ops, read = ("empty", "t", "normal_", "exp"), ((3, "input", 2), (3, "output", 3))
        return run([0.0] * 4, ops, calls + read, norm=norms, min=0.0, max=norms, storage_id=memory)

    right = filled(1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 6.0)
    assert compared(filled(*[2.8e36] * 4, 5.0, 5.0, 6.0), right) == [("-", -1), ("-", -1), ("clean", -1), ("clean", -1)]
    assert compared(filled(*[2.8e36] * 4, 5.5, 5.5, 6.6), right)[2:] == [("local", 2), ("propagated", 2)]


def test_rounding_is_judged_by_the_coarsest_dtype_on_the_way():
    calls = [*CALLS]
    left, right = run([1.0, 1.01, 1.01, 1.01], calls=calls), run([1.0] * 4, calls=calls)
    coarse = run([1.0, 1.01, 1.01, 1.01], dtype=["float32", "bfloat16", "bfloat16", "float32", "float32", "float32"])
    assert compared(left, right)[0] == ("local", 0)
    assert {name for name, _ in compared(coarse, right)} == {"clean"}


def test_arguments_that_differ_are_told_where_a_difference_begins():
    left = run([1.0, 1.01, 1.01, 1.01], arguments=('{"dim": 0, "device": "cuda"}', None, '{"eps": 1e-05}'))
    right = run([1.0] * 4, arguments=('{"dim": [0, 1], "device": "cpu"}', '{"p": "inf"}', '{"eps": 1e-05}'))
    found = side_by_side(left, right)
    assert found["arguments"].tolist()[:2] == ['{"dim": [0, [0, 1]]}', '{"p": [null, "inf"]}']
    assert found["arguments"].isna().tolist() == [False, False, True]
    assert found["message"][0].endswith("norm 1.01, there 1; dim is 0 on the left, [0, 1] on the right")
    assert found["message"].isna().tolist() == [False, True, True]


def test_arguments_of_other_ops_are_not_compared():
    left, right = run([1.0] * 4, arguments=('{"p": 1}', None, None)), run([1.0] * 4, ops=("exp2", "sin", "tanh"))
    assert side_by_side(left, right)["arguments"].isna().all()


def test_a_second_beginning_has_both():
    left, right = run([1.0, 1.001, 1.5, 1.5]), run([1.0] * 4)
    assert compared(left, right) == [("local", 0), ("both", 1), ("propagated", 1)]


def test_an_op_of_one_run_only_is_where_it_begins_if_what_follows_differs():
    calls = ((0, "input", 0), (0, "output", 1), (1, "input", 1), (1, "output", 2))
    left, right = run([1.0, 1.2, 1.2, 1.2]), run([1.0, 1.0, 1.0], ops=("sin", "tanh"), calls=calls)
    found = side_by_side(left, right)
    assert found["action"].tolist() == ["left_only", "match", "match"]
    assert found["mark"].tolist() == ["-", "~", "~"]
    assert found["error_class"].tolist() == ["local", "propagated", "propagated"]
    assert found["message"].iloc[0].startswith("only the left run has it, and what reads its result differs: norm 1.2")
    assert notes_on(found)[0].startswith("Ops of the left run only: 1, of the right one only: 0;")


def test_a_cast_of_one_run_only_is_no_beginning():
    calls = ((0, "input", 0), (0, "output", 1), (1, "input", 1), (1, "output", 2))
    left, right = run([1.0] * 4, ops=("_to_copy", "sin", "tanh")), run([1.0] * 3, ops=("sin", "tanh"), calls=calls)
    assert compared(left, right) == [("-", -1), ("clean", -1), ("clean", -1)]


def test_another_op_in_its_place_is_named_if_what_reads_it_differs():
    left, right = run([1.0, 1.0, 1.3, 1.3], ops=("exp", "gelu", "tanh")), run([1.0] * 4, ops=("exp", "relu", "tanh"))
    assert compared(left, right) == [("clean", -1), ("local", 1), ("propagated", 1)]
    first = first_beginning(side_by_side(left, right))
    assert (first["op"], first["right_op"]) == ("aten.gelu.default", "aten.relu.default")
    assert first["message"].startswith("the right run has another op in its place")


@pytest.mark.parametrize(
    ("calls", "names"), [(CALLS, ["clean", "-", "-", "clean"]), (CALLS[:4], ["clean", "local"])], ids=["read", "unread"]
)
def test_another_op_in_its_place_is_none_where_what_reads_it_agrees(calls, names):
    left = run([1.0, 1.0, 1.3, 1.0], ops=("exp", "gelu", "tanh")[: len(calls) // 2], calls=calls)
    right = run([1.0] * 4, ops=("exp", "relu", "tanh")[: len(calls) // 2], calls=calls)
    assert [found for found, _ in compared(left, right)] == names


def test_another_op_in_its_place_is_none_where_an_op_of_one_run_only_reads_it():
    longer = run([1.0, 1.0, 1.3, 1.3], ops=("exp", "gelu", "_to_copy"))
    shorter = run([1.0] * 3, ops=("exp", "relu"), calls=CALLS[:4])
    for sides in ((longer, shorter), (shorter, longer)):
        assert compared(*sides) == [("clean", -1), ("-", -1), ("-", -1)]


@pytest.mark.parametrize(("op", "name"), [("exp", "local"), ("sum", "clean")])
def test_a_sum_that_cancels_may_differ_by_more(op, name):
    """2e-4 of a result that is a hundred-thousandth of what is added up."""
    left, right = (
        run([1.0, 1.0002e-5, 1.0002e-5, 1.0002e-5], ops=(op, "sin", "tanh")),
        run([1.0, 1e-5, 1e-5, 1e-5], ops=(op, "sin", "tanh")),
    )
    assert compared(left, right)[0][0] == name


def test_draws_have_a_message_of_their_own():
    calls = ((0, "output", 1), (1, "input", 1), (1, "output", 2), (2, "input", 2), (2, "output", 3))
    left, right = (run([0.0, norm, norm, norm], ops=("randn", "sin", "tanh"), calls=calls) for norm in (1.0, 2.0))
    assert "it draws random numbers, with another seed" in side_by_side(left, right)["message"].iloc[0]


@pytest.mark.parametrize(
    ("changes", "relation"),
    [
        ({"dtype": "float64"}, "cast"),
        ({"shape": "[8, 2]"}, "permute"),
        ({"shape": "[4, 4]"}, "reshape"),
        ({"shape": "[8]", "numel": 8}, "other"),
    ],
)
def test_how_results_are_the_same(changes, relation):
    found = side_by_side(run([1.0] * 4), run([1.0] * 4, **changes))
    assert set(found["relation"]) == {relation}
    assert set(found["evidence"]) == {"name"}


def test_a_result_of_another_size_says_so():
    other = run([1.0] * 4, shape=["[2, 8]", "[8]", "[8]", "[8]", "[8]", "[8]"], numel=[16, 8, 8, 8, 8, 8])
    assert side_by_side(run([1.0] * 4), other)["message"].iloc[0] == "its result has the shape [2, 8], there [8]"


def test_what_reads_a_right_result_is_where_values_begin_to_differ():
    """Both make another first result, from which the second is the same; so it is right, and the third begins."""
    calls = ((0, "input", 0), (0, "output", 1), (1, "input", 1), (1, "output", 2), (2, "input", 1), (2, "output", 3))
    left, right = run([1.0, 1.3, 3.0, 9.0], calls=calls), run([1.0, 1.6, 3.0, 5.0], calls=calls)
    found = aligned_by_value(left, right)
    assert (found.differing, found.beginnings) == (({2}, {2}), ({2: []}, {2: []}))
