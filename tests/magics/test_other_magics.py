"""In a real kernel: our magics together with other magics, in nested cells and through IPython's other doors."""

import pytest

from tests.support.executed import written

OPS = "list(_{0}.ops[_{0}.ops.level == 'aten']['op'])"


@pytest.fixture(autouse=True)
def no_trace_yet(kernel):
    kernel.run("_optrace = _optime = None")


BOTH = ["optrace", "optime"]
SHOWS_VALUE = {"%%time\n%%{}", "%%{}\n%%time", "%%{}\n\n%%time"}


@pytest.mark.parametrize("verb", BOTH)
@pytest.mark.parametrize(
    "lines",
    ["%%time\n%%{}", "%%{}\n%%time", "%%{}\n\n%%time", "%%capture\n%%{}", "%%{}\n%%capture",
     "%%timeit -n1 -r1\n%%{}", "%%{}\n%%timeit -n1 -r1", "%%{}\n%%prun -q"],
)  # fmt: skip
def test_other_cell_magics_above_and_below(kernel, verb, lines):
    reply = kernel.run(f"{lines.format(verb)}\nx + 1")
    assert (reply.status, reply.error) == ("ok", None)
    # The profiler also sees what the op is made of.
    assert kernel.value(OPS.format(verb))[0] == "aten.add.Tensor"
    assert reply.texts("value") == (["tensor([2., 2., 2.])"] if lines in SHOWS_VALUE else [])


@pytest.mark.parametrize(("outer", "inner"), [("optrace", "optrace"), ("opcheck", "optrace"), ("optrace", "opdiff")])
def test_one_verb_above_another(kernel, outer, inner):
    reply = kernel.run(f"%%{outer} -q -o outer\n%%{inner} -q -o inner\nx + 1")
    assert (reply.status, reply.outputs) == ("ok", [("value", "tensor([2., 2., 2.])")])
    assert kernel.value(f"outer is _{outer}, outer is not inner") == (True, True)
    assert kernel.value("['aten.add.Tensor' in list(t.ops['op']) for t in (outer, inner)]") == [True, True]


@pytest.mark.parametrize("pair", ["optrace optime", "optime opcheck", "optime opaudit", "opdiff opcast"])
@pytest.mark.parametrize("between", ["", "%%time\n"])
def test_what_cannot_be_recorded_in_one_pass_is_refused_in_one_sentence(kernel, pair, between):
    outer, inner = pair.split()
    reply = kernel.run(f"%%{outer}\n{between}%%{inner}\nx + 1")
    assert reply.texts("stderr") == [f"UsageError: %%{outer} and %%{inner}: use one verb per cell.\n"]
    assert reply.texts("display") == []


def test_a_verb_that_cannot_run_inside_another_is_no_failure_of_nbkit(kernel):
    reply = kernel.run("%%optime\nget_ipython().run_cell_magic('opcheck', '', 'x + 1')")
    shown = "".join(text for _, text in reply.outputs)
    assert "opcheck cannot run inside optime: optime would count the work of opcheck as the step's" in shown
    assert "nbkit itself failed" not in shown


def test_a_magic_that_runs_the_text_itself_is_told_apart(kernel):
    reply = kernel.run("%%prun -q\n%%optrace -o t\nx + 1")
    assert reply.texts("stderr")[-1] == (
        "UsageError: %%optrace must be the first line of its cell here; put it above the other magic.\n"
    )


def test_a_value_below_a_second_magic_can_be_silenced(kernel):
    assert kernel.run("%%optrace\n%%time\nx + 1;").texts("value") == []


def test_an_error_below_a_second_magic_has_the_cells_lines(kernel):
    reply = kernel.run("%%optrace\n%%capture\nx + 1\nfails()")
    below_time = kernel.run("%%optrace\n%%time\na = 1\nb = 2\nfails()")
    assert below_time.error == ("ValueError", "no")
    assert "Cell In[1], line 6, in fails()" in below_time.texts("error")[0]
    assert reply.status == kernel.run("%%capture\nfails()").status


def test_run_cell_magic_labels_lines_as_the_notebook_shows_them(kernel):
    reply = kernel.run("get_ipython().run_cell_magic('optrace', '-q', 'a = x + 1\\n\\n\\nraise KeyError(a)')")
    number = kernel.value("len(In) - 1")
    assert f"Cell In[{number}], line 5" in reply.texts("error")[0]
    assert "nbkit/magics" not in reply.texts("error")[0]
    assert kernel.value("_optrace.complete") is False


def test_run_cell_magic_gives_the_value_back_and_takes_options_as_typed(kernel):
    reply = kernel.run("get_ipython().run_cell_magic('optrace', '--name \"{x} $x\"', 'y = x + 1\\ny')")
    assert reply.texts("value") == ["tensor([2., 2., 2.])"]
    assert kernel.value("_optrace.meta['name']") == "{x} $x"


def test_a_traced_cell_inside_a_traced_cell(kernel):
    inner = "get_ipython().run_cell('%%optrace -q -o inner\\ny = x * 3')"
    reply = kernel.run(f"%%optrace -q -o outer\nx + 1\n{inner}\nx * 5")
    assert reply.texts("value")[-1] == "tensor([5., 5., 5.])"
    counts = "[[list(t.ops['op']).count(f'aten.{op}.Tensor') for op in ('add', 'mul')] for t in (inner, outer)]"
    assert kernel.value(counts) == [[0, 1], [1, 2]]


def test_scripts_of_ipython_run_traced_cells(kernel, tmp_path):
    written(["%%optrace -o of_book\nx + 1"], tmp_path / "a.ipynb")
    (tmp_path / "a.ipy").write_text("get_ipython().run_cell_magic('optrace', '-o of_script', 'x + 1')\n")
    kernel.run(f"%run -i {tmp_path}/a.ipynb\n%run -i {tmp_path}/a.ipy")
    assert kernel.value("len(of_book.ops) > 0, len(of_script.ops) > 0") == (True, True)


def test_object_help_works_inside_and_on_the_magic(kernel):
    assert kernel.run("%%optrace\nx + 1\nlater?").status == "ok"
    assert kernel.value(OPS.format("optrace")) == ["aten.add.Tensor"]
    assert kernel.run("%%optrace?").status == "ok"
    assert kernel.value("get_ipython().find_cell_magic('optrace').__doc__.startswith('usage: %%optrace')") is True


@pytest.mark.parametrize("mode", ["all", "last", "last_expr_or_assign", "none"])
@pytest.mark.parametrize("body", ["a = 1\na\nb = 2\nb", "a = 1\na\nb = 2"])
def test_every_interactivity_shows_what_it_shows_bare(kernel, mode, body):
    kernel.run(f"get_ipython().ast_node_interactivity = {mode!r}")
    bare, traced = kernel.run(f"0;\n{body}"), kernel.run(f"%%optrace -q\n0;\n{body}")
    kernel.run("get_ipython().ast_node_interactivity = 'last_expr'")
    assert traced.outputs == bare.outputs


def test_reset_inside_and_before_the_cell(kernel):
    kernel.run("%reset -f")
    reply = kernel.run("%%optrace -q -o t\nimport torch\ny = torch.ones(2)\n%reset -f\n1 + 1")
    assert (reply.status, reply.texts("value")[-1:]) == ("ok", ["2"])
    assert kernel.value("'aten.ones.default' in list(t.ops['op'])") is True
