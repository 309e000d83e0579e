"""The frame of an exported HTML page: title, style, and a policy that lets nothing load and only its own script run."""

import base64
import hashlib
import re
from dataclasses import dataclass
from html import escape

# The page's own policy forbids whatever an escape might have missed: no load, and no script but that with its hash.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = """
:root{color-scheme:light dark;--page-bg:#fff;--page-fg:#1f2328}
@media (prefers-color-scheme:dark){:root{--page-bg:#161616;--page-fg:#e6e6e6}}
body{margin:0 auto;padding:16px;max-width:1100px;background:var(--page-bg);color:var(--page-fg);
font:14px/1.5 system-ui,sans-serif}
h1{font-size:20px;margin:0 0 12px;overflow-wrap:anywhere}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));gap:12px;margin:16px 0}
.charts figure{margin:0}
.charts .wide{grid-column:1/-1}
.charts svg{width:100%;height:auto;background:#fff;border-radius:4px}
@media print{body{max-width:none;padding:0}}
"""
_ENDS_SCRIPT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


@dataclass(frozen=True)
class Body:
    """What is between title and end of a page: HTML, and a script, if it has one."""

    html: str
    script: str = ""


def document(title: str, body: Body) -> str:
    """The page as text; the same for the same title and body."""
    policy, script = POLICY, ""
    if body.script:
        # The parser makes \n of every line end before the browser hashes the script, and must not see its end early.
        source = _ENDS_SCRIPT.sub(r"\\x3c", re.sub(r"\r\n?", "\n", body.script))
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode("ascii")
        policy = f"{POLICY}; script-src 'sha256-{digest}'"
        script = f'<script type="module">{source}</script>'
    title = escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        f"<style>{STYLE}</style></head><body><h1>{title}</h1>{body.html}{script}</body></html>\n"
    )
