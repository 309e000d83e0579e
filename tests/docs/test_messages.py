"""What the pages quote, nbkit says: word for word, but for what varies."""

from pathlib import Path

import pytest

from tests.docs.messages import quotes, templates, unknown

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "docs" / name for name in ("troubleshooting.md", "guides/distributed_and_compiled.md")),
    *sorted((ROOT / "docs/sources/texts").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_quoted_message_is_in_nbkit(page):
    assert quotes(page.read_text())
    assert unknown(page, templates(ROOT / "nbkit")) == []


def test_a_quote_that_nbkit_does_not_say_is_found(tmp_path):
    (tmp_path / "code.py").write_text("raise ValueError(f'{name!r} is not ' 'known.')\nreason = 'views'")
    (tmp_path / "page.md").write_text("Text\n> ... is not known.\n> - views\n> - view\n> is not known.\n")
    assert unknown(tmp_path / "page.md", templates(tmp_path)) == ["view", "is not known."]
