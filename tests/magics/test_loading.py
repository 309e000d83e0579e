"""In a real kernel: what loading brings in, and that unloading takes all of it out; and a whole notebook."""

import pytest

from tests.support.executed import notebook_of, run

STATE = (
    "[len(get_ipython().input_transformers_cleanup), len(get_ipython().input_transformers_post),"
    " len(get_ipython().ast_transformers), sorted(get_ipython().magics_manager.magics['cell']),"
    " [n for n in dir(__import__('builtins')) + list(globals()) + list(get_ipython().user_ns_hidden) if 'nbkit' in n]]"
)

RECORDING = {"opaudit", "opcapture", "opcast", "opcheck", "opcost", "opdiff", "opdoctor", "opfallback", "opstable"}
VERBS = RECORDING | {"optime", "optrace"}


def test_loading_twice_is_loading_once_and_unloading_leaves_nothing(kernel):
    loaded = kernel.value(STATE)
    kernel.run("import nbkit\nnbkit.load_ipython_extension(get_ipython())\n%reload_ext nbkit\ndel nbkit")
    assert kernel.value(STATE) == loaded
    kernel.run("%unload_ext nbkit")
    counts, unloaded = loaded[:3], kernel.value(STATE)
    assert unloaded[:3] == [count - 1 for count in counts]
    assert (set(loaded[3]) - set(unloaded[3]), unloaded[4]) == (VERBS, [])
    assert "Cell magic `%%optrace` not found" in kernel.run("%%optrace\nx + 1").texts("stderr")[0]
    kernel.run("%load_ext nbkit")


NEW_VERB = """\
from nbkit import magics, optrace
from nbkit.magics.cell_magic import CellMagic
from nbkit.verbs.verb import Recorder
def opcount(*, name="counted"):
    "Count ops."
    return optrace(name=name)
said = lambda trace: f"{len(trace.tensors)} tensors"
recorder = Recorder("__main__:opcount", "count ops", "Count ops.", nothing=said)
magics.CELL_MAGICS["opcount"] = CellMagic("opcount", recorder)
magics.load(get_ipython())
"""


def test_a_new_verb_joins_by_one_entry(kernel):
    kernel.run(NEW_VERB)
    reply = kernel.run("%%opcount -o counted\nawait later(x + 1)")
    assert [text for _, text in reply.outputs] == ["%%opcount: 2 tensors", "tensor([2., 2., 2.])"]
    assert kernel.value("counted is _opcount, counted.meta['name']") == (True, "counted")
    kernel.run("magics.unload(get_ipython())\ndel magics.CELL_MAGICS['opcount']\nmagics.load(get_ipython())")
    assert kernel.run("%%opcount\nx").error[0] == "UsageError"


def test_the_magic_is_listed(kernel):
    assert {"%%optrace", "%%optime"} <= set(kernel.run("%lsmagic").outputs[0][1].split())


def test_check_complete_treats_it_as_a_cell_magic(kernel):
    cells = ["%%optrace", "%%optrace\nx", "%%optrace\nx\n\n"]
    checks = kernel.value(f"[get_ipython().check_complete(cell)[0] for cell in {cells}]")
    assert checks == ["incomplete", "incomplete", "complete"]


@pytest.mark.cold
def test_import_alone_brings_no_widgets_and_no_ipython(kernel):
    code = "import sys, nbkit; print({'IPython', 'plotly', 'anywidget', 'matplotlib'} & set(sys.modules))"
    kernel.run(f"import subprocess, sys\nout = subprocess.check_output([sys.executable, '-c', {code!r}], text=True)")
    assert kernel.value("out") == "set()\n"


@pytest.mark.parametrize(
    ("cell", "error"),
    [("%%optrace\nx + 1\nraise ValueError('no')", "ValueError"), ("%%optrace --outptu t\nx + 1", "UsageError")],
    ids=["error", "bad option"],
)
def test_run_all_stops_at_a_failed_cell(cell, error, tmp_path):
    cells = ["%load_ext nbkit\nimport torch\nx = torch.ones(2)", cell, "print('ran on')"]
    from nbclient.exceptions import CellExecutionError

    notebook = notebook_of(cells)
    with pytest.raises(CellExecutionError, match=error):
        run(notebook, tmp_path)
    assert [code.execution_count for code in notebook.cells] == [1, 2, None]
    assert len([output for output in notebook.cells[1].outputs if output.output_type == "error"]) <= 1
