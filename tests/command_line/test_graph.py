"""`graph`: what is in a dump, as text or as a page; two compared."""

import pytest

import nbkit as package
from tests.support.graph_texts import ONEFLOW, PADDLE


@pytest.fixture(autouse=True)
def dumps(folder):
    (folder / "net.log").write_text(ONEFLOW)
    (folder / "net.txt").write_text(PADDLE)


def test_it_shows_the_graph(nbkit, folder, capsys):
    assert nbkit("graph", "net.log") == 0
    assert capsys.readouterr().out == package.load(folder / "net.log").summary() + "\n"


def test_two_are_compared_and_saved(nbkit, folder):
    assert nbkit("graph", "net.log", "--against", "net.txt", "--save", "both") == 0
    saved = package.load(folder / "both")
    wanted = package.opgraph(folder / "net.log", against=folder / "net.txt")
    assert saved.correspondence.equals(wanted.correspondence)


def test_one_graph_of_several_is_chosen(nbkit, folder, capsys):
    nbkit("graph", "net.log", "--against", "net.txt", "--save", "both")
    assert nbkit("graph", "both", "--graph", "block 0") == 0
    assert "1 graph, 4 nodes" in capsys.readouterr().out


def test_a_report_is_that_of_the_function(nbkit, folder, capsys):
    assert nbkit("graph", "net.log", "-o", "out/r.html") == 0
    assert capsys.readouterr().out.startswith(f"{folder / 'out/r.html'}: ")
    wanted = package.opreport(package.load(folder / "net.log"), path=folder / "wanted.html")
    assert (folder / "out/r.html").read_bytes() == wanted.read_bytes()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "PATH is missing."),
        (["absent"], "There is no file or folder absent in "),
        (["train.py"], "train.py is not a trace: it is neither a folder of Trace.save() nor JSON, and no text of"),
        (["net.log", "--against", "empty"], "empty is empty; "),
        (["net.log", "--graph", "net_0"], "There is no graph 'net_0' in 'net.log'; did you mean 'net_0 compiled'?"),
        (["net.log", "-o", "."], "it is a folder; give the name of a file in it."),
    ],
)
def test_bad_use_is_one_sentence(nbkit, folder, capsys, words, sentence):
    (folder / "empty").write_bytes(b"")
    assert nbkit("graph", *words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("python -m nbkit graph: ") and sentence in err
    assert (out, err.count("\n")) == ("", 1)
