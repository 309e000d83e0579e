"""The style that static views share, and the facts of a trace as HTML; every text escaped, no script."""

from html import escape

from nbkit.views.summary.facts import SKIPPED, Facts

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
.nbkit-static figure{margin:8px 0;max-width:900px}.nbkit-static figure svg{width:100%;height:auto}
.nbkit-brief{margin:0 0 12px;overflow-wrap:anywhere;--error:#d64545;--warning:#d97706;--hint:#3b82f6;--good:#16a34a}
.nbkit-brief :is(p,ol){margin:0;padding:0;list-style:none}.nbkit-brief ol{margin:8px 0}
.nbkit-brief :is(li,p.nbkit-bad,p.nbkit-good){border-inline-start:3px solid var(--hint);padding-inline-start:8px;
margin:0 0 8px}
.nbkit-brief :is(li.nbkit-error,p.nbkit-bad){border-color:var(--error)}
.nbkit-brief li.nbkit-warning{border-color:var(--warning)}
.nbkit-brief p.nbkit-good{border-color:var(--good)}
.nbkit-brief code{font-family:ui-monospace,monospace;font-size:.95em;background:none;padding:0;color:inherit;
white-space:pre-wrap;unicode-bidi:isolate}
.nbkit-brief .nbkit-aside{opacity:.8}
.nbkit-brief button{background:none;border:0;color:var(--jp-content-link-color,#0b62c4);cursor:pointer;font:inherit;
padding:0;text-align:start;text-decoration:underline;text-underline-offset:3px}
.nbkit-brief li.nbkit-chosen{background:color-mix(in srgb,var(--hint) 14%,transparent)}
"""


def static_div(html: str) -> str:
    """Wraps HTML for a notebook as a static view with its style."""
    return f'<style>{STYLE}</style><div class="nbkit-static">{html}</div>'


def facts_html(known: Facts) -> str:
    """Writes title, figures, why the trace is incomplete if it is, and notes as paragraphs."""
    figures = " · ".join(f"{escape(label)} <b>{escape(value)}</b>" for label, value in known.figures)
    parts = [f"<p><b>{escape(known.title)}</b> · {figures}</p>"]
    if known.incomplete:
        parts.append(f'<p class="nbkit-incomplete"><b>INCOMPLETE</b> {escape(known.incomplete)}</p>')
    parts += [f"<p>{escape(note)}</p>" for note in known.notes if not note.startswith(SKIPPED)]
    skipped = "".join(f"<p>{escape(note)}</p>" for note in known.notes if note.startswith(SKIPPED))
    return "".join(parts) + (f"<details><summary>What is not shown</summary>{skipped}</details>" if skipped else "")
