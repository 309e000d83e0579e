"""Records of several lines: which lines are theirs, and what comes of them."""

from typing import Any

from nbkit.readers.oneflow.text.multiline_records import (
    LONGEST_TENSOR,
    LONGEST_TRACEBACK,
    AddBody,
    ProtoBody,
    SetBody,
    TensorBody,
    TracebackBody,
    begins_record,
)
from nbkit.readers.skipped_lines import SkippedLines

NEXT = "(GRAPH:g:Graph): ("


def fed(body: Any, *lines: str) -> list[bool]:
    """Whether each line was taken; ends as its reader does: at the first that was not, or where it is finished."""
    taken = []
    for number, line in enumerate(lines, 10):
        taken.append(body.add(number, line))
        if not taken[-1] or body.is_finished:
            break
    return taken


def proto(*lines: str) -> tuple[list[bool], Any, SkippedLines]:
    done: list[Any] = []
    skipped = SkippedLines()
    body = ProtoBody(9, lambda fields, is_whole: done.append((fields, is_whole)), skipped)
    taken = fed(body, *lines)
    body.close()
    return taken, done[0], skipped


def test_other_records_are_seen_to_begin() -> None:
    assert begins_record(NEXT)
    assert begins_record("[WARNING](x")
    assert begins_record("I0101 10:00:00.000000  1 a.cpp:3] Lazy nn.Graph name g try to add op:")
    assert not begins_record('name: "a"')
    assert not begins_record("")


def test_a_message_ends_with_a_blank_line() -> None:
    taken, (fields, is_whole), skipped = proto('name: "a"', "user_conf {", 'op_type_name: "relu"', "}", "", "more")
    assert (taken, is_whole, skipped.count) == ([True] * 5, True, 0)
    assert set(fields) == {"name", "user_conf"}


def test_a_message_may_begin_with_a_colon_and_a_blank_line() -> None:
    taken, (fields, is_whole), skipped = proto("", ': name: "a"', "conf {", "}", "", "more")
    assert (taken, list(fields), is_whole, skipped.count) == ([True] * 5, ["name", "conf"], True, 0)


def test_a_message_that_another_record_cuts_is_told() -> None:
    taken, (fields, is_whole), skipped = proto('name: "a"', "user_conf {", NEXT)
    assert (taken, list(fields), is_whole) == ([True, True, False], ["name", "user_conf"], False)
    assert [(row["line"], row["reason"]) for row in skipped.rows] == [(9, "its text is cut")]


def test_a_line_that_is_no_field_is_told_and_the_rest_read() -> None:
    taken, (fields, is_whole), skipped = proto('name: "a"', "what is this", "conf {", "}", "", "x")
    assert (taken, list(fields), is_whole) == ([True] * 5, ["name", "conf"], False)
    assert [(row["line"], row["reason"]) for row in skipped.rows] == [(11, "no field of a")]


def test_an_op_is_added_by_its_name_or_by_its_whole_text() -> None:
    named: list[Any] = []
    whole: list[Any] = []

    def body() -> AddBody:
        return AddBody(
            lambda name, is_free: named.append((name, is_free)),
            lambda: ProtoBody(9, lambda fields, is_whole: whole.append((list(fields), is_whole)), SkippedLines()),
        )

    one = body()
    assert one.is_cut
    assert fed(one, "", "model.fc-matmul-0", "x") == [True, True]
    assert fed(body(), "model.w for FreeEagerTensor.") == [True]
    assert named == [("model.fc-matmul-0", False), ("model.w", True)]
    assert fed(body(), NEXT) == [False]
    one = body()
    assert fed(one, ': name: "a"', "conf {", "}", "", "x") == [True] * 4
    assert not one.is_cut
    one.close()
    assert whole == [(["name", "conf"], True)]
    assert len(named) == 2
    body().close()


def test_a_tensor_ends_with_its_last_bracket() -> None:
    done: list[str] = []
    body = TensorBody(done.append)
    assert fed(body, "tensor(..., size=(2,", "3), dtype=oneflow.float32)", "x") == [True, True]
    assert body.is_cut
    body.close()
    assert done == ["tensor(..., size=(2, 3), dtype=oneflow.float32)"]
    assert fed(TensorBody(done.append), "tensor(", NEXT) == [True, False]
    assert len(fed(TensorBody(done.append), *["tensor(("] * 99)) == LONGEST_TENSOR


def test_a_set_of_ops_ends_with_a_name_without_a_comma() -> None:
    done: list[Any] = []

    def ended(*lines: str, head: str = "") -> Any:
        body = SetBody(head, lambda names, is_cut: done.append((names, is_cut)))
        taken = fed(body, *lines)
        state = body.is_cut
        body.close()
        return taken, state, *done.pop()

    assert ended("a,", "b", "x") == ([True, True, False], False, ["a", "b"], False)
    assert ended("a,", NEXT) == ([True, False], True, ["a"], True)
    assert ended() == ([], False, [], True)
    # glog cuts at 30,000 bytes, somewhere in a name.
    assert ended("a,", "bc", head="x" * 29_900) == ([True, True], False, ["a"], True)
    assert ended("a,", "b,", head="x" * 29_900) == ([True, True], True, ["a", "b"], True)
    assert ended("ä" * 10, head="x" * (29_900 - 70 - 22)) == ([True], False, ["ä" * 10], False)
    assert ended("ä" * 10, head="x" * (29_900 - 70 - 21)) == ([True], False, [], True)


def test_a_traceback_ends_with_its_exception() -> None:
    done: list[Any] = []
    body = TracebackBody(lambda number, line: done.append((number, line)))
    assert fed(body, '  File "a.py", line 1', "a: b", "Some words Error: x", "RuntimeError: no", "x") == [True] * 4
    assert done == [(13, "RuntimeError: no")]
    assert fed(TracebackBody(lambda number, line: None), "x", NEXT) == [True, False]
    lines = ["x"] * (LONGEST_TRACEBACK + 9)
    assert fed(TracebackBody(lambda number, line: None), *lines) == [True] * LONGEST_TRACEBACK + [False]
