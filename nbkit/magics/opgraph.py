"""`%opgraph`: the graph of a model, a trace, a dump or an ONNX model of this notebook."""

from argparse import Namespace
from pathlib import Path

from nbkit.errors import NbkitError, nearest
from nbkit.magics.arguments import LineParser, add_result_options
from nbkit.magics.line_magic import LineMagic
from nbkit.magics.notebook import Notebook
from nbkit.trace.trace import Trace
from nbkit.verbs import opgraph

DESCRIPTION = """\
Show the graph of a model, a recorded step, a dump of another framework or an ONNX model, with its parts recognised.

    %opgraph model                              the module tree of a model
    %opgraph _optrace                           the ops of a recorded step, and what they read
    %opgraph 'rwkv.log' -o log                  what a OneFlow log or a Paddle program holds, stored under a name
    %opgraph program --against 'rwkv.log'       which parts, parameters and ops of both correspond

SOURCE is a name of this notebook (a module, what torch.export.export() gave, a trace; model.layers is a name, too), or
the path of a file or a saved trace, in quotes where it has blanks."""


def _parser() -> LineParser:
    parser = LineParser("%opgraph", DESCRIPTION)
    add_result_options(parser, "opgraph")
    opgraph.add_options(parser, "SOURCE", "a name of this notebook, or a path")
    return parser


def _run(options: Namespace, notebook: Notebook) -> Trace | None:
    trace = opgraph.graph(options, lambda word: _source(notebook, word))
    notebook.store("_opgraph", trace)
    if options.output is not None:
        notebook.store(options.output, trace)
    return None if options.quiet else trace


def _source(notebook: Notebook, word: str) -> object:
    """What the word stands for: a name first, else the path of something that is there."""
    found = notebook.value(word)
    if found is not None:
        return found
    if Path(word).expanduser().exists():
        return Path(word).expanduser()
    known = nearest(word, notebook.names()) if word.isidentifier() and notebook.names() else "give one of these."
    raise NbkitError(f"there is neither a name {word!r} in this notebook nor such a file; {known}")


OPGRAPH = LineMagic("opgraph", _parser(), _run)
