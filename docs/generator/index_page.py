"""The index of all pages: verbs and frames with a sentence each, and the pages written by hand."""

from pathlib import Path

import nbkit
from docs.generator.examples import Example
from docs.generator.markdown import page, table
from docs.generator.tables import page_of
from nbkit.magics import CELL_MAGICS, LINE_MAGICS
from nbkit.schema import Table
from nbkit.verbs.options.docstrings import read


def index_page(docs: Path, examples: dict[str, Example], known: list[Table]) -> str:
    """Returns the page as Markdown."""
    verbs = [[f"[{name}](verbs/{name}.md)", read(getattr(nbkit, name)).head] for name in (*CELL_MAGICS, *LINE_MAGICS)]
    frames = [[f"[{of.name}]({page_of(of)})", f"one row per {of.row}"] for of in known]
    return page(
        "# Documentation",
        "Start with the [README](../README.md) and the [notebooks](../notebooks); here you look things up.",
        "## Verbs",
        table(["verb", "what it does"], verbs),
        "## Frames",
        table(["frame", "its rows"], frames),
        "## Guides",
        "\n".join(_entry(path, docs) for path in sorted((docs / "guides").glob("*.md"))),
        "## More",
        "\n".join(_entry(path, docs) for path in sorted(docs.glob("*.md")) if path.name != "README.md"),
        "## For contributors",
        "\n".join(_entry(path, docs) for path in sorted((docs / "development").glob("*.md"))),
        "`make docs` makes this page and those of verbs, frames, functions and findings from the code, a test holds "
        "them to it. Of a verb, only its example and what it costs and skips are written by hand, in "
        "[sources](sources).",
    )


def _entry(path: Path, docs: Path) -> str:
    return f"- [{path.read_text(encoding='utf-8').splitlines()[0].removeprefix('# ')}]({path.relative_to(docs)})"
