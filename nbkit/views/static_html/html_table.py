"""HTML of tables and of a trace's facts, and the style they share; every text escaped, no script."""

from collections.abc import Collection, Iterable, Sequence
from html import escape

from nbkit.views.sections.section import Section
from nbkit.views.summary import units
from nbkit.views.summary.facts import PHASE_COLORS, Facts

NUMBERS = ("#", "self time", "calls", "share")
# Figures of sections that are no numbers.
WORDS = (
    "phase",
    "verdict",
    "kind",
    "module",
    "source",
    "what happened",
    "type",
    "role",
    "ops right in it",
    "result",
    "text",
    "right graph",
    "relation",
    "what differs",
)
# Those that are sentences, and are shown whole.
SENTENCES = ("what happened",)
STYLE = """
.nbkit-static{--fg:var(--jp-ui-font-color1,#1f2328);--bg:var(--jp-layout-color0,#fff);color:var(--fg);background:var(--bg);
font:12px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);font-variant-numeric:tabular-nums;padding:8px 10px;
border:1px solid color-mix(in srgb,var(--fg) 14%,var(--bg));border-radius:4px;overflow:auto}
@media (prefers-color-scheme:dark){
.nbkit-static{--fg:var(--jp-ui-font-color1,#e6e6e6);--bg:var(--jp-layout-color0,#161616)}}
.nbkit-static.nbkit-static p{margin:0 0 4px}
.nbkit-static.nbkit-static .nbkit-tables{display:flex;flex-wrap:wrap;align-items:flex-start;gap:4px 24px}
.nbkit-static.nbkit-static table{border-collapse:collapse;margin:6px 0;
font-size:12px;table-layout:auto}
.nbkit-static.nbkit-static caption{text-align:left;font-weight:600;padding:0;color:inherit}
.nbkit-static.nbkit-static :is(th,td){text-align:left;padding:1px 12px 1px 0;border:0;
max-width:340px;overflow:hidden;
text-overflow:ellipsis;white-space:nowrap;unicode-bidi:isolate}
.nbkit-static.nbkit-static td.nbkit-sentence{white-space:normal;min-width:240px;max-width:560px}
.nbkit-static.nbkit-static tr:nth-child(n){background:none}
.nbkit-static.nbkit-static th{border-bottom:1px solid color-mix(in srgb,var(--fg) 30%,var(--bg))}
.nbkit-static.nbkit-static .nbkit-number{text-align:right}.nbkit-static.nbkit-static .nbkit-null{opacity:.7}
.nbkit-static.nbkit-static i{display:inline-block;width:8px;height:8px;border-radius:2px;margin-right:6px}
.nbkit-static.nbkit-static .nbkit-incomplete{border-left:3px solid #d64545;padding-left:8px}
.nbkit-static svg{display:block;margin:8px 0}
"""


def facts_html(known: Facts) -> str:
    """Title, figures, why the trace is incomplete if it is, and notes, as paragraphs."""
    figures = " · ".join(f"{escape(label)} <b>{escape(value)}</b>" for label, value in known.figures)
    parts = [f"<p><b>{escape(known.title)}</b> · {figures}</p>"]
    if known.incomplete:
        parts.append(f'<p class="nbkit-incomplete"><b>INCOMPLETE</b> {escape(known.incomplete)}</p>')
    parts += [f"<p>{escape(note)}</p>" for note in known.notes]
    return "".join(parts)


def sections_html(sections: Iterable[Section]) -> str:
    """The tables of a summary side by side; empty for none."""
    tables = []
    for each in sections:
        numbers = [name for name in each.figures if name not in WORDS]
        tables.append(html_table(each.title, [each.noun, *each.figures], each.rows, numbers))
    return f'<div class="nbkit-tables">{"".join(tables)}</div>' if tables else ""


def html_table(
    title: str, columns: Sequence[str], table: Iterable[Iterable[object]], numbers: Collection[str] = NUMBERS
) -> str:
    """A table of texts; None reads as a dash, phases get their colour beside it, `numbers` stand to the right."""
    looks = [_look(name, numbers) for name in columns]
    head = "".join(f'<th scope="col"{look}>{escape(name)}</th>' for name, look in zip(columns, looks, strict=True))
    lines = [
        "".join(f"<td{look}>{_cell(name, value)}</td>" for name, look, value in zip(columns, looks, row, strict=True))
        for row in table
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _look(column: str, numbers: Collection[str]) -> str:
    if column in SENTENCES:
        return ' class="nbkit-sentence"'
    return ' class="nbkit-number"' if column in numbers else ""


def _cell(column: str, value: object) -> str:
    if value is None:
        return f'<span class="nbkit-null">{units.NULL}</span>'
    color = PHASE_COLORS.get(str(value)) if column == "phase" else None
    return (f'<i style="background:{color}"></i>' if color else "") + escape(str(value))
