"""Older versions of IPython: magics without the mark for `;`, and cells that only their history names."""

from types import SimpleNamespace

import pytest
from IPython.core import magic

from nbkit.compat.ipython_versions import cell_label, output_can_be_silenced


class Compiler:
    """Names files as ipykernel does, by what is in them; it keeps no numbers, as that of IPython 7."""

    def get_code_name(self, raw, transformed, number):
        return f"/tmp/cells/{raw}.py"


@pytest.fixture
def shell():
    raw, transformed = ["", "x", "y", "x"], ["", "X", "Y", "X"]
    return SimpleNamespace(
        compile=Compiler(), history_manager=SimpleNamespace(input_hist_raw=raw, input_hist_parsed=transformed)
    )


def test_a_cell_of_ipython_7_is_named_by_its_history(shell):
    assert cell_label(shell, "/tmp/cells/y.py") == "Cell In[2]"


def test_of_equal_cells_the_last_one_ran(shell):
    assert cell_label(shell, "/tmp/cells/x.py") == "Cell In[3]"


def test_a_file_is_no_cell(shell):
    assert cell_label(shell, "/tmp/cells/z.py") is None


def test_ipython_8_says_it_itself():
    names = {"/tmp/1.py": ("Cell", "In[7]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    assert cell_label(shell, "/tmp/1.py") == "Cell In[7]"
    assert cell_label(shell, "/tmp/2.py") is None


def test_a_shell_without_history_names_no_cell():
    assert cell_label(SimpleNamespace(), "/tmp/1.py") is None


def test_without_the_mark_the_magic_stays_as_it_is(monkeypatch):
    monkeypatch.delattr(magic, "output_can_be_silenced", raising=False)
    assert output_can_be_silenced(len) is len


def test_the_mark_is_that_of_ipython(monkeypatch):
    monkeypatch.setattr(magic, "output_can_be_silenced", lambda function: ("marked", function), raising=False)
    assert output_can_be_silenced(len) == ("marked", len)
