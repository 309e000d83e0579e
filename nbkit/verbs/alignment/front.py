"""OPALIGN is opalign as `%opalign` and as `align`: their options, and what they show."""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.errors import NbkitError, OptionError
from nbkit.trace.executions.arrays import read_arrays
from nbkit.trace.trace import Trace
from nbkit.verbs.alignment.accepted import WAYS
from nbkit.verbs.alignment.exports import compare_exports
from nbkit.verbs.alignment.opalign import opalign
from nbkit.verbs.notebook import Notebook
from nbkit.verbs.options.generated import OptionHolder
from nbkit.verbs.options.parser import absolute_path, integer
from nbkit.verbs.verb import FINDINGS, FINE, PROGRAM, Command, LineMagic, Outcome, Verb
from nbkit.views.alignment.text import side_by_side_text
from nbkit.views.alignment_view import ALIGNMENT_VIEW
from nbkit.views.report.opreport import opreport

# Options that say nothing of several right sides.
OF_ONE = ("right_inputs", "copy_parameters", "pairs", "name")
PAIRS = "write every pair as text, side by side"


def _add_line_options(holder: OptionHolder) -> None:
    holder.add_argument("left", metavar="LEFT", help="what is right: a name of this notebook, or a path")
    right = f"what is compared with it: likewise, or what LEFT is turned into: {', '.join(WAYS)}; several make a table"
    holder.add_argument("right", nargs="+", metavar="RIGHT", help=right)
    inputs = "names of the inputs of both, in their order, or the name of a dict, tuple or list of them"
    holder.add_argument("--inputs", nargs="+", default=[], metavar="NAME", help=inputs)
    right_inputs = "those of RIGHT, likewise, where they are not the same"
    holder.add_argument("--right-inputs", nargs="+", metavar="NAME", help=right_inputs)
    copying = "first load the left module's parameters into the right one, in place"
    holder.add_argument("--copy-parameters", action="store_true", help=copying)
    holder.add_argument("--backward", action="store_true", help="also run the backward pass of torch models")
    holder.add_argument("--opset", type=integer, metavar="N", help="opset of the ONNX model that is exported")
    dump = "new folder for the graphs that LEFT is turned into, each with its inputs"
    holder.add_argument("--dump", type=absolute_path, metavar="FOLDER", help=dump)
    holder.add_argument("--pairs", action="store_true", help=PAIRS)
    holder.add_argument("--name", metavar="TEXT", help="what the trace is called where it is shown")


def _run_line(options: Namespace, notebook: Notebook) -> Trace | pd.DataFrame:
    left, inputs = notebook.source(options.left), _inputs(notebook, options.inputs, "--inputs")
    rights = [word if word in WAYS else notebook.source(word) for word in options.right]
    exporting = {"backward": options.backward, "opset": options.opset, "dump": options.dump}
    if len(rights) > 1:
        if other := [name for name in OF_ONE if getattr(options, name)]:
            option = other[0].replace("_", "-")
            raise NbkitError(f"--{option} is for one right side, and {len(rights)} are given; leave it out.")
        return compare_exports(left, rights, inputs=inputs, **exporting)
    return opalign(
        left,
        rights[0],
        inputs=inputs,
        right_inputs=options.right_inputs and _inputs(notebook, options.right_inputs, "--right-inputs"),
        copy_parameters=options.copy_parameters,
        name=options.name,
        **exporting,
    )


def _inputs(notebook: Notebook, names: Sequence[str], option: str) -> Mapping[str, Any] | Sequence[Any]:
    values = [_named(notebook, name, option) for name in names]
    if len(values) == 1 and isinstance(values[0], Mapping | tuple | list):
        return values[0]
    return values


def _named(notebook: Notebook, name: str, option: str) -> Any:
    value = notebook.value(name)
    if value is None:
        raise NbkitError(f"there is no {name!r} in this notebook, which {option} names; give names of tensors.")
    return value


LINE = LineMagic(
    """\
Run two models on the same inputs, put their results side by side, and say where they first diverge.

    %opalign mine theirs --inputs ids      two implementations of a model
    %opalign model onnx --inputs ids       a model, and exported to ONNX
    %opalign 'a.onnx' 'b.onnx' --inputs d  two ONNX models; d: arrays by name
    %opalign model onnx export --inputs x  several: one table, a row for each
    %opalign model onnx --inputs x --pairs every pair, as text side by side
    %opalign hf own --inputs x --copy-parameters   own: gets hf's weights
    %opalign before after                  two steps of optrace, values="stats"

LEFT and RIGHT are names of this notebook (a module, a program of torch.export, an ONNX model, a trace), or the paths of
an ONNX model or a saved trace, in quotes where they have blanks.""",
    _add_line_options,
    _run_line,
    stores_result=True,
    text=lambda options, trace: side_by_side_text(trace) if options.pairs else None,
)


def _add_command_options(holder: OptionHolder) -> None:
    holder.add_argument("left", metavar="LEFT", help="an ONNX model, or the folder of a trace: what is right")
    holder.add_argument("right", metavar="RIGHT", help="what is compared with it, likewise")
    inputs = "numpy file with an array for each input of LEFT, by its name (numpy.savez); may hold those of RIGHT, too"
    holder.add_argument("--inputs", type=absolute_path, metavar="FILE.npz", help=inputs)
    right_inputs = "those of RIGHT; else what it calls otherwise is matched by dtype and shape, then in order"
    holder.add_argument("--right-inputs", type=absolute_path, metavar="FILE.npz", help=right_inputs)
    output = "write the HTML file FILE instead of text; one that is there is replaced"
    holder.add_argument("-o", "--output", type=absolute_path, metavar="FILE", help=output)
    holder.add_argument("--save", type=absolute_path, metavar="FOLDER", help="save the trace there")
    holder.add_argument("--pairs", action="store_true", help=PAIRS)


def _run_command(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    for path in (options.left, options.right):
        if not Path(path).exists():
            raise OptionError(f"there is no file {path}; give an ONNX model or the folder of a saved trace.")
    progress(f"running {options.left} and {options.right}")
    inputs = {} if options.inputs is None else read_arrays(options.inputs)
    right_inputs = None if options.right_inputs is None else read_arrays(options.right_inputs)
    trace = opalign(Path(options.left), Path(options.right), inputs=inputs, right_inputs=right_inputs)
    if options.save is not None:
        trace.save(options.save)
    status = FINDINGS if trace.meta["first_divergence"] or trace.meta["error"] else FINE
    if options.output is not None:
        progress(f"writing {options.output}")
        opreport(trace, path=options.output)
        size = units.data_size(options.output.stat().st_size)
        return Outcome(f"{options.output}: {size}", status, [trace])
    text = side_by_side_text(trace) if options.pairs else trace.summary()
    return Outcome(text if options.save is None else None, status, [trace])


COMMAND = Command(
    "align",
    "put two executions side by side and say where they first diverge",
    "align a.onnx b.onnx --inputs inputs.npz",
    f"""\
Run two ONNX models on the same inputs, or take two recorded steps with value statistics, and put their results side by
side.

    {PROGRAM} align a.onnx b.onnx --inputs inputs.npz
        says where they first diverge, and what of it is known
    {PROGRAM} align a.onnx b.onnx --inputs inputs.npz --pairs
        writes every pair of results
    {PROGRAM} align a.onnx b.onnx --inputs inputs.npz -o report.html
        writes a page with the pairs and both graphs

Exit status: 0 if they agree; 1 if they diverge or one of them ended early; 2 if a file cannot be used.""",
    _add_command_options,
    _run_command,
)
OPALIGN = Verb("opalign", view=ALIGNMENT_VIEW, line=LINE, command=COMMAND)
