"""Names on one line, with nothing hidden in them."""

from nbkit.views.summary.names import shown, shown_module


def test_invisible_characters_are_escaped() -> None:
    assert shown("a\nb\x1b[31m\u202ec\u2028") == "a\\nb\\x1b[31m\\u202ec\\u2028"


def test_letters_of_any_script_stay() -> None:
    assert shown("слой.注意力 é") == "слой.注意力 é"


def test_long_names_are_cut() -> None:
    assert shown("x" * 300, 10) == "xxxxxxxxx…"
    assert len(shown("\u202e" * 300)) == 200


def test_module_names() -> None:
    assert shown_module("Net", "") == "(root)"
    assert shown_module("Net", "fc", with_model=True) == "Net: fc"
    assert shown_module(None, None) == "outside modules"


def test_marks_that_cannot_be_seen_are_escaped_between_other_letters() -> None:
    assert shown("é\u202e") == "é\\u202e"
    assert shown("é\n") == "é\\n"
    assert shown("é\u00a0\U0001f600") == "é\u00a0\U0001f600"
    assert shown("x" * 10, 10) == "x" * 10
    assert shown("é" * 11, 10) == "é" * 9 + "…"
