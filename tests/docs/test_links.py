"""Every relative link of the pages leads somewhere: to a file, and to a heading in it."""

from pathlib import Path

import pytest

from tests.docs.links import anchors, broken_links

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "sources" not in page.parts),
]


def test_all_pages_are_looked_at():
    assert {"README.md", "troubleshooting.md", "comparison.md", "optrace.md", "ops.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    assert broken_links(page) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b` c: d\n[1](https://example.org) [2](#a-b-c-d) [3](page.md#no) [4](gone.md) [5](#e)\n```\n[6](no)\n```\n"
    )
    assert anchors(page) == {"a-b-c-d"}
    assert broken_links(page) == ["page.md#no", "gone.md", "#e"]


def test_equal_headings_get_numbers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# See [this](x.md)\n## Limits\n## Limits\n")
    assert anchors(page) == {"see-this", "limits", "limits-1"}
