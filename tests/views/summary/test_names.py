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
