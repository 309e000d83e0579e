"""Lines of our magics are completed: options, their values, ops and modules of the last trace, names of traces."""

import pytest

SETUP = """\
%load_ext nbkit
import torch, nbkit
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
with nbkit.optrace() as timing:
    model(torch.ones(1, 2))
"""


@pytest.fixture(params=[False, True], ids=["jedi off", "jedi on"])
def complete(request, kernel):
    kernel.run(f"{SETUP}get_ipython().Completer.use_jedi = {request.param}")

    def of(line, cell=""):
        """Returns the ends that the kernel offers for a line, as whole lines."""
        request = kernel.client.complete(line + cell, len(line))
        content = kernel._reply(request)
        return [line[: content["cursor_start"]] + text for text in content["matches"]]

    return of


def test_options_of_a_cell_magic(complete):
    lines = complete("%%optime --", "\nmodel(x)")
    assert {"%%optime --memory", "%%optime --warmup", "%%optime --repeats", "%%optime --help"} <= set(lines)
    assert all(line.startswith("%%optime --") for line in lines)
    assert complete("%%optime --memory --wa") == ["%%optime --memory --warmup"]


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        ("%%opdiff --level ", ["module", "op"]),
        ("%%optrace --threads=", ["all", "current"]),
        ("%%opcast --dtype b", ["bfloat16"]),
        ("%%opdiff --phases b", ["backward"]),
        ("%%opstable --checks batch,t", ["threads"]),
        ("%%optrace --ops aten.re", ["aten.relu.default"]),
        ("%%optrace --exclude-ops aten.relu.default,aten.ad", ["aten.addmm.default"]),
        ("%%optrace --modules 0", []),
        ("%%optrace -o tim", ["timing"]),
        ("%opreport tim", ["timing"]),
        ("%opreport timing tim", ["timing"]),
        ("%opreport timing --ba", ["--base"]),
        ("%opgraph mod", ["model"]),
    ],
)
def test_values_of_options(complete, line, ends):
    offered = complete(line)
    words = [text.rpartition("=")[2].rpartition(" ")[2].rpartition(",")[2] for text in offered]
    assert words == ends or (ends == [] and not any(word.startswith("--") for word in words))


def test_other_lines_are_completed_as_ever(complete):
    assert "timing.ops" in complete("timing.op")
    assert "%timeit" in complete("%time")
    assert "%%optrace\nmodel" in complete("%%optrace\nmod")


def test_unloading_takes_it_away(complete, kernel):
    kernel.run("%unload_ext nbkit")
    assert kernel.value("get_ipython().Completer.custom_matchers") == []
    kernel.run("%load_ext nbkit\n%reload_ext nbkit")
    assert kernel.value("len(get_ipython().Completer.custom_matchers)") == 1
