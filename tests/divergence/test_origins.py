"""Tests whether an error is its op's own, and which op it goes back to."""

from nbkit.divergence.origins import origins
from tests.divergence.makers import make_chain, make_diffs
from tests.support.fakes import make_tensors

RIGHT = {"local_error": 1e-7, "propagated_error": 1e-7}
WRONG = {"local_error": 1e-2, "propagated_error": 1e-7, "status": "mismatch"}
AFTER = {"local_error": 1e-7, "propagated_error": 1e-2}


def classes(diffs, tensors):
    return [(one.error_class, one.origin_op_id) for one in origins(diffs, tensors)]


def test_rounding_is_clean_however_it_grows():
    diffs = make_diffs(RIGHT, {**RIGHT, "propagated_error": 1e-3}, {**RIGHT, "propagated_error": 1.0})
    assert classes(diffs, make_chain(3)) == [("clean", None)] * 3


def test_an_error_that_nothing_it_read_had_is_no_fault():
    assert classes(make_diffs(AFTER), make_chain(1)) == [("clean", None)]


def test_integers_have_no_rounding_that_an_error_could_be():
    wrong = {**WRONG, "local_error": 0.5, "propagated_error": 0.25, "dtype": "int64"}
    assert classes(make_diffs(WRONG, wrong), make_chain(2)) == [("local", 0), ("both", 1)]


def test_what_follows_an_op_at_fault_propagates_its_error():
    assert classes(make_diffs(RIGHT, WRONG, AFTER, AFTER), make_chain(4)) == [
        ("clean", None),
        ("local", 1),
        ("propagated", 1),
        ("propagated", 1),
    ]


def test_an_op_at_fault_behind_another_has_both_and_the_larger_error_is_the_origin():
    larger = {**WRONG, "local_error": 0.5, "propagated_error": 1e-2}
    smaller = {**WRONG, "local_error": 1e-3, "propagated_error": 1e-2}
    assert classes(make_diffs(WRONG, larger, AFTER), make_chain(3)) == [("local", 0), ("both", 1), ("propagated", 1)]
    assert classes(make_diffs(WRONG, smaller, AFTER), make_chain(3)) == [
        ("local", 0),
        ("both", 0),
        ("propagated", 0),
    ]


def test_what_reads_other_memory_is_clean():
    tensors = make_tensors((0, "input", 0), (0, "output", 1), (1, "input", 0), (1, "output", 2))
    assert classes(make_diffs(WRONG, RIGHT), tensors) == [("local", 0), ("clean", None)]


def test_memory_written_anew_is_clean_again():
    tensors = make_tensors(
        (0, "input", 0), (0, "output", 1), (1, "input", 0), (1, "output", 1), (2, "input", 1), (2, "output", 2)
    )
    assert classes(make_diffs(WRONG, RIGHT, RIGHT), tensors) == [("local", 0), ("clean", None), ("clean", None)]


def test_a_write_to_a_part_leaves_the_error_of_the_rest():
    tensors = make_tensors(
        (0, "input", 0), (0, "output", 1), (1, "input", 0), (1, "output", 1), (2, "input", 1), (2, "output", 2)
    )
    tensors.loc[3, "numel"] = 4
    assert classes(make_diffs(WRONG, RIGHT, AFTER), tensors)[2] == ("propagated", 0)


def test_an_op_that_was_not_compared_passes_errors_on():
    diffs = make_diffs(WRONG, AFTER)
    diffs.loc[1, "op_id"] = 2
    assert classes(diffs, make_chain(3)) == [("local", 0), ("propagated", 0)]


def test_a_result_whose_shadow_began_anew_has_no_class_and_ends_the_error():
    anew = {"local_error": 1e-7}
    assert classes(make_diffs(WRONG, anew, RIGHT), make_chain(3))[1:] == [(None, None), ("clean", None)]


def test_errors_without_bound_are_shared_out_too():
    inf = float("inf")
    wrong, after = {**WRONG, "local_error": inf}, {**AFTER, "propagated_error": inf}
    assert classes(make_diffs(wrong, after), make_chain(2)) == [("local", 0), ("propagated", 0)]
