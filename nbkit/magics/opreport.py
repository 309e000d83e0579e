"""`%opreport`: traces of this notebook as one HTML file."""

import os
from argparse import Namespace
from html import escape
from urllib.parse import quote

from nbkit.magics.arguments import LineParser
from nbkit.magics.line_magic import LineMagic
from nbkit.magics.notebook import Notebook
from nbkit.verbs import opreport

DESCRIPTION = """\
Write one HTML file of traces: a summary in words, the widgets of the notebook, tables and pictures.

It opens in any browser, offline and without a kernel; where no script runs, tables and pictures remain. TRACE is the
name of a trace: what -o NAME stored, or _optrace, _optime, _opdiff, _opcheck for the last of each."""


def _parser() -> LineParser:
    parser = LineParser("%opreport", DESCRIPTION)
    opreport.add_options(parser, "name of a trace, in the order in which they are to stand")
    return parser


def _run(options: Namespace, notebook: Notebook) -> dict[str, str]:
    """Where the report is; as a link that JupyterLab follows if it is below the notebook."""
    written = opreport.write(options, notebook.trace)
    short = os.path.relpath(written.path)
    text = {"text/plain": f"{short}: {written.size}"}
    if short.startswith(os.pardir):
        return text
    link = f'<a href="{escape(quote(short))}" target="_blank">{escape(short)}</a>'
    return {**text, "text/html": f"{link}: {escape(written.size)}"}


OPREPORT = LineMagic("opreport", _parser(), _run)
