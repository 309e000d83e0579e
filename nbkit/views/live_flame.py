"""The live flamegraph inside an exported page: the notebook's own bundle, its data, and a stand-in for the kernel."""

import re
from pathlib import Path

from nbkit.errors import NbkitError
from nbkit.trace import Trace
from nbkit.views.difference_svg import difference_html
from nbkit.views.document import Body
from nbkit.views.flame_difference import flame_states
from nbkit.views.flame_payload import payload
from nbkit.views.flame_svg import flame_svg

STATIC = Path(__file__).parent / "static"
HOST = Path(__file__).parent / "flame_page.js"
# What ends an ES module of one default export, as esbuild writes it.
_EXPORT = re.compile(r"export\s*\{\s*([\w$]+)\s+as\s+default\s*,?\s*\}\s*;?")
STYLE = "#nbkit-live{margin:16px 0}#nbkit-live[hidden],#nbkit-twin[hidden]{display:none}"


def live_flame(trace: Trace, base: Trace | None) -> Body:
    """The flamegraph, as the difference to `base` if that is given, and a still one to show where no script runs."""
    states = flame_states(trace, base)
    twin = flame_svg(trace) if base is None else difference_html(states)
    css = (STATIC / "flamegraph.css").read_text(encoding="utf-8").replace("</", "<\\/")
    html = (
        f"<style>{STYLE}{css}</style>"
        f'<div id="nbkit-live" hidden></div><div id="nbkit-twin">{twin}</div>'
        # Base64 has no character that means anything to a parser, so the data cannot leave its element.
        f'<script type="application/octet-stream" id="nbkit-data">{payload(states)}</script>'
    )
    return Body(html, page_script((STATIC / "flamegraph.js").read_text(encoding="utf-8")))


def page_script(module: str) -> str:
    """The widget's module followed by its host; the module's export becomes the host's start.

    Raises NbkitError if the module has not exactly one default export at its end.
    """
    exports = _EXPORT.findall(module)
    if len(exports) != 1:
        raise NbkitError(
            f"flamegraph.js has {len(exports)} default exports of the form 'export {{ X as default }}', expected 1; "
            f"build it with esbuild (make bundle)."
        )
    return f"{_EXPORT.sub('', module).rstrip()}\n{HOST.read_text(encoding='utf-8')}nbkitStartPage({exports[0]});\n"
