"""Writes every generated page below a folder, docs/ if none is named, and takes away pages that are none any more."""

import sys
from pathlib import Path

from docs.generator.pages import pages
from nbkit.capture.native.library import library

DOCS = Path(__file__).parents[1]


def write(folder: Path) -> None:
    """Writes the generated pages below `folder`. Their examples show what the built recorder records."""
    if library() is None:
        sys.exit("The recorder is not built, and the pages' examples are made with it: run `make recorder` first.")
    texts = pages(DOCS)
    for kind in ("verbs", "frames"):
        for old in (folder / kind).rglob("*.md"):
            if str(old.relative_to(folder)) not in texts:
                old.unlink()
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
