"""Older versions of IPython: magics without the mark for `;`, and cells that only their history names."""

import linecache
from types import SimpleNamespace

import pytest
from IPython.core import completer, magic

from nbkit.compat.ipython_versions import add_matcher, cell_label, output_can_be_silenced, remove_matcher


@pytest.fixture
def shell(monkeypatch):
    """A shell of IPython 7 after three cells: its compiler keeps no numbers, only the code of each file."""
    for code in ("x = 1\nx", "y", "z"):
        lines = [f"{line}\n" for line in code.splitlines()]
        monkeypatch.setitem(linecache.cache, f"/cells/{code[0]}.py", (len(code), 0.0, lines, f"/cells/{code[0]}.py"))
    cells = ["", "x = 1\nx", "y", "x = 1\nx"]
    return SimpleNamespace(compile=SimpleNamespace(), history_manager=SimpleNamespace(input_hist_parsed=cells))


def test_a_cell_of_ipython_7_is_named_by_its_history(shell):
    assert cell_label(shell, "/cells/y.py") == "Cell In[2]"


def test_of_equal_cells_the_last_one_ran(shell):
    assert cell_label(shell, "/cells/x.py") == "Cell In[3]"


def test_a_file_is_no_cell(shell):
    assert cell_label(shell, "/cells/z.py") is None
    assert cell_label(shell, __file__) is None


def test_ipython_8_says_it_itself():
    names = {"/cells/1.py": ("Cell", "In[7]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    assert cell_label(shell, "/cells/1.py") == "Cell In[7]"
    assert cell_label(shell, "/cells/2.py") is None


def test_a_shell_without_history_names_no_cell():
    assert cell_label(SimpleNamespace(), "/cells/1.py") is None


def test_without_the_mark_the_magic_stays_as_it_is(monkeypatch):
    monkeypatch.delattr(magic, "output_can_be_silenced", raising=False)
    assert output_can_be_silenced(len) is len


def test_the_mark_is_that_of_ipython(monkeypatch):
    monkeypatch.setattr(magic, "output_can_be_silenced", lambda function: ("marked", function), raising=False)
    assert output_can_be_silenced(len) == ("marked", len)


def test_a_matcher_of_ipython_7_gives_whole_words(monkeypatch):
    """Its matchers are given the last word as the shell divides it, and give what is to stand there."""
    monkeypatch.delattr(completer, "context_matcher", raising=False)
    shell = SimpleNamespace(Completer=SimpleNamespace(custom_matchers=[len], text_until_cursor="%%optrace --ops a,b.c"))
    add_matcher(shell, lambda line: ("b.c", ["b.cd"]) if line.endswith("a,b.c") else ("", []))
    _, matcher = shell.Completer.custom_matchers
    assert matcher("b.c") == ["b.cd"]
    remove_matcher(shell)
    assert shell.Completer.custom_matchers == [len]
