"""Writers of sections: as text that fits a terminal, and as HTML that needs no script."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from html import escape
from textwrap import wrap

from nbkit import units
from nbkit.views.sections.section import Column, Section
from nbkit.views.summary.facts import PHASE_COLORS

# Characters of a line: what a terminal has is kept between these; where there is none, as wide as the middle one.
NARROWEST, USUAL, WIDEST = 80, 100, 120
# Names keep so many characters where they are cut; columns stand so far apart.
FEWEST, GAP = 12, 2
MIN_NAME, MIN_FIGURE = 32, 8
# Characters from which on a caption is wrapped, not cut.
LONG = 60
Texts = list[list[str]]


def text_width() -> int:
    """Returns how many characters a line of text has: those of the terminal, within reason."""
    if not sys.stdout.isatty():
        return USUAL
    return min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)


def to_text(sections: Iterable[Section], width: int | None = None) -> list[str]:
    """Writes the tables as lines of `width` characters, by default those of the terminal, each after an empty line.

    Long names lose their middle, and sentences that do not fit stand below their row.
    """
    width = text_width() if width is None else width
    return [line for section in sections for line in ["", *_section_lines(section, width)]]


def _section_lines(section: Section, width: int) -> list[str]:
    first = section.columns[0]
    title = first.label if first.kind == "phase" else section.title.lower()
    head, rows = [title, *(column.label for column in section.columns[1:])], _row_texts(section)
    beside, below = _layout(section.columns, [head, *rows], width)
    kinds = [section.columns[index] for index in beside]
    widths = _fitted(kinds, _widths(kinds, [[row[index] for index in beside] for row in [head, *rows]]), width)
    # A title that is wider than the names stands above them, whole.
    lines, head[0] = ([], title) if len(title) <= widths[0] else ([title], first.label)
    for number, row in enumerate([head, *rows]):
        lines.append(_line(kinds, [row[index] for index in beside], widths))
        lines += [line for index in below if number for line in _below(row[index], width)]
    return [*lines, *([section.caption] if section.caption else [])]


def _row_texts(section: Section) -> Texts:
    return [[text or units.NULL for text in row] for row in section.texts()]


def _layout(columns: Sequence[Column], table: Texts, width: int) -> tuple[list[int], list[int]]:
    """Returns the columns that stand side by side, and the sentences that do not fit and stand below their row."""
    below = [index for index, column in enumerate(columns) if column.kind == "sentence" and index]
    if _total(_widths(columns, table)) <= width:
        below = []
    return [index for index in range(len(columns)) if index not in below], below


def _widths(columns: Sequence[Column], table: Texts) -> list[int]:
    longest = [max(map(len, texts)) for texts in zip(*table, strict=True)]
    if len(columns) == 1:
        return longest
    return [max(longest[0], MIN_NAME), *(max(size, MIN_FIGURE) for size in longest[1:])]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _fitted(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """Narrows the columns of words until all fit: the widest first, names of rows last."""
    widths = list(widths)
    fewest = [MIN_NAME if not index else FEWEST for index in range(len(columns))]
    words = [index for index, column in enumerate(columns) if column.is_words]
    for least in (fewest, [FEWEST] * len(columns)):
        while _total(widths) > width and (wide := [index for index in words if widths[index] > least[index]]):
            widths[max(wide, key=lambda index: widths[index])] -= 1
    return widths


def _line(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> str:
    texts = [
        without_middle(text, width).ljust(width) if column.is_words else text.rjust(width)
        for column, text, width in zip(columns, row, widths, strict=True)
    ]
    return (" " * GAP).join(texts).rstrip()


def _below(text: str, width: int) -> list[str]:
    """Returns the lines of a sentence below its row; none for what is missing."""
    return [] if text == units.NULL else wrap(text, width, initial_indent="    ", subsequent_indent="    ")


def without_middle(text: str, width: int) -> str:
    """Cuts a text to so many characters in its middle: the ends of a name say more."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def to_html(sections: Iterable[Section]) -> str:
    """Writes the tables side by side as HTML, every text escaped; empty for none."""
    tables = "".join(_table(section) for section in sections)
    return f'<div class="nbkit-tables">{tables}</div>' if tables else ""


def _table(section: Section) -> str:
    """Writes a table as HTML; missing values read as a dash, phases have their color beside them."""
    columns = section.columns
    head = "".join(f'<th scope="col"{_look(column)}>{escape(column.label)}</th>' for column in columns)
    body = "".join(
        f"<tr>{''.join(_cell(column, text) for column, text in zip(columns, row, strict=True))}</tr>"
        for row in section.texts()
    )
    # A short caption needs no more room than its table has.
    look = ' class="nbkit-sentence"' if len(section.caption) > LONG else ""
    caption_cell = f'<td colspan="{len(columns)}"{look}>{escape(section.caption)}</td>'
    more = f"<tr>{caption_cell}</tr>" if section.caption else ""
    caption = f"<caption>{escape(section.title)}</caption>"
    labels = f"<thead><tr>{head}</tr></thead>" if any(column.label for column in columns) else ""
    return f"<table>{caption}{labels}<tbody>{body}{more}</tbody></table>"


def _look(column: Column) -> str:
    if column.kind == "sentence":
        return ' class="nbkit-sentence"'
    return "" if column.is_words else ' class="nbkit-number"'


def _cell(column: Column, text: str | None) -> str:
    if text is None:
        return f'<td{_look(column)}><span class="nbkit-null">{units.NULL}</span></td>'
    color = PHASE_COLORS.get(text) if column.kind == "phase" else None
    swatch = f'<i style="background:{color}"></i>' if color else ""
    return f"<td{_look(column)}>{swatch}{escape(text)}</td>"
