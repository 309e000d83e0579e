"""The frame of an exported HTML page: title, style, and a policy that lets nothing load and only its own script run."""

import base64
import hashlib
import re
from dataclasses import dataclass
from html import escape

# The page's own policy forbids whatever an escape might have missed: no load, and no script but that with its hash.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_ENDS_SCRIPT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


@dataclass(frozen=True)
class Body:
    """What is between title and end of a page: HTML, and its styles and script, if it has them."""

    html: str
    style: str = ""
    script: str = ""


def document(title: str, body: Body) -> str:
    """Returns the page as text; the same for the same title and body."""
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
        f"<style>{body.style}</style></head><body><h1>{title}</h1>{body.html}{script}</body></html>\n"
    )
