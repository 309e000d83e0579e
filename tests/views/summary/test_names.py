"""Names on one line, with nothing hidden in them."""

import pytest

from nbkit.views.summary.names import short_paths, short_sources, shown, shown_module


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


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("/venv/lib/site-packages/transformers/models/gpt2/modeling_gpt2.py:9", "transformers/.../modeling_gpt2.py:9"),
        ("site-packages/einops/einops.py:12", "einops/einops.py:12"),
        ("/srv/ada/project/models/net.py:35", ".../models/net.py:35"),
        ("models/net.py:35", "models/net.py:35"),
        ("Cell In[3], line 5", "Cell In[3], line 5"),
        ("a share of 3/4 in /a/b/c/net.py:3, 2/s", "a share of 3/4 in .../c/net.py:3, 2/s"),
        (r"C:\Users\ada\Lib\site-packages\einops\parts\ops.py:3", "einops/.../ops.py:3"),
    ],
)
def test_paths_are_cut_on_the_left(source: str, short: str) -> None:
    assert short_paths(source) == short


def test_lines_that_would_read_the_same_stay_as_they_are() -> None:
    assert short_sources(["/a/b/c/net.py:1", "/x/b/c/net.py:1", "/x/b/c/net.py:2"]) == [
        "/a/b/c/net.py:1", "/x/b/c/net.py:1", ".../c/net.py:2",
    ]  # fmt: skip
