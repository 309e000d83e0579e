"""What stands before a record in a line: colors, ranks, times and marks of other tools."""

import pytest

from nbkit.readers.oneflow.text.lines import LONGEST_PREFIX, MOST_PREFIXES, Cleaner, Glog, glog

RECORD = "(GRAPH:g:Graph): ("
HEAD = "I20230102 10:11:12.345678  77 job/plan.cpp:9]"


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        (f"  {RECORD}  ", None, RECORD),
        (f"\x1b[31m{RECORD}\x1b[0m", None, RECORD),
        (f"[1,3]<stdout>: {RECORD}", "3", RECORD),
        (f"[rank12]: {RECORD}", "12", RECORD),
        (f"[default0]:{RECORD}", "0", RECORD),
        (f"# > {RECORD}", None, RECORD),
        (f"2023-01-02 10:11:12,345 - INFO - {RECORD}", None, RECORD),
        (f"[2023-01-02T10:11:12Z] {RECORD}", None, RECORD),
        (f"17:\t{RECORD}", None, RECORD),
        (f"[1,3]<stderr>: 2023-01-02 10:11:12 | 17: {RECORD}", "3", RECORD),
        ("[ERROR](x)", None, "[ERROR](x)"),
        ("12 loaves", None, "12 loaves"),
        ("", None, ""),
    ],
)
def test_known_prefixes_are_taken_off(line: str, rank: str | None, text: str) -> None:
    assert Cleaner().clean(line) == (rank, text)


def test_no_more_than_a_few_are_taken_off() -> None:
    assert Cleaner().clean(f"{'# ' * MOST_PREFIXES}{RECORD}") == (None, RECORD)
    assert Cleaner().clean(f"{'1: ' * (MOST_PREFIXES + 1)}{RECORD}") == (None, f"1: {RECORD}")


def test_a_prefix_of_an_unknown_form_is_learned_with_any_numbers() -> None:
    cleaner = Cleaner()
    assert cleaner.clean(f"pod-1 (7)> {RECORD}") == (None, f"pod-1 (7)> {RECORD}")
    assert cleaner.learn(f"pod-1 (7)> {RECORD}") == RECORD
    assert cleaner.clean(f"pod-22 (8)>   {RECORD}") == (None, RECORD)
    assert cleaner.clean("pod-22 (8)> anything") == (None, "anything")
    assert cleaner.clean(f"pod-x (8)> {RECORD}") == (None, f"pod-x (8)> {RECORD}")
    assert cleaner.learn("nothing here") is None
    assert cleaner.learn(RECORD) is None


def test_what_a_person_wrote_and_what_is_long_is_not_learned() -> None:
    for prefix in ("see", "x" * LONGEST_PREFIX + ">"):
        cleaner = Cleaner()
        assert cleaner.learn(f"{prefix} {RECORD}") == RECORD
        assert cleaner.clean(f"{prefix} {RECORD}") == (None, f"{prefix} {RECORD}")
    cleaner = Cleaner()
    for letter in "abcde"[: MOST_PREFIXES + 1]:
        cleaner.learn(f"{letter}> {HEAD} x")
    assert [cleaner.clean(f"{letter}> y")[1] for letter in "abcde"] == ["y", "y", "y", "y", "e> y"]


def test_a_line_of_glog_is_read_in_parts() -> None:
    assert glog(f"{HEAD} a message") == Glog("I", "20230102", "10:11:12.345678", "77", "job/plan.cpp:9", "a message")
    assert glog("F0102 10:11:12.3 7 a.cu:1]x") == Glog("F", "0102", "10:11:12.3", "7", "a.cu:1", "x")
    assert glog("Info") is glog("") is glog(f"x{HEAD}") is None
