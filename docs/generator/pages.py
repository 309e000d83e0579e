"""Every generated page by its name below docs/."""

from pathlib import Path

from docs.generator.command_line_page import command_line_page
from docs.generator.examples import Example, run_all
from docs.generator.findings_page import findings_page
from docs.generator.frame_page import frame_page
from docs.generator.functions_page import functions_page
from docs.generator.index_page import index_page
from docs.generator.tables import page_of, tables
from docs.generator.verb_page import function_page, recorder_page
from nbkit.magics import CELL_MAGICS, LINE_MAGICS
from nbkit.schema import Table


def pages(docs: Path) -> dict[str, str]:
    """Writes all pages; raises LookupError for a verb without its files in docs/sources, or a frame none fills."""
    examples = run_all(docs / "sources", [*CELL_MAGICS, *LINE_MAGICS])
    known = tables()
    texts = {f"verbs/{name}.md": recorder_page(magic, examples[name]) for name, magic in CELL_MAGICS.items()}
    texts |= {f"verbs/{name}.md": function_page(name, magic, examples[name]) for name, magic in LINE_MAGICS.items()}
    texts |= {page_of(table): frame_page(table, _fillers(table, examples), docs) for table in known}
    texts["functions.md"] = functions_page(examples)
    texts["command_line.md"] = command_line_page()
    texts["findings.md"] = findings_page()
    texts["README.md"] = index_page(docs, examples, known)
    return texts


def _fillers(table: Table, examples: dict[str, Example]) -> list[Example]:
    found = [example for example in examples.values() if table.name in example.frames]
    if not found:
        raise LookupError(f"No example in docs/sources/examples fills the frame {table.name!r}; add one that does.")
    return found
