"""Paths that cannot be read or written, and folders that are made: every command says the same of them."""

import pytest

from tests.support.fakes import small_trace


@pytest.fixture(autouse=True)
def saved(folder):
    small_trace(name="mine").save(folder / "t")
    (folder / "hollow").mkdir()
    (folder / "empty").touch()
    (folder / "words").write_text("hello\n")


READING = [("load",), ("graph",), ("graph", "t", "--against"), ("report", "-o", "r.html"), ("diff", "t"), ("info",)]
UNREADABLE = {
    "absent.onnx": "There is no file or folder absent.onnx in ",
    "absent/deep.json": "There is no file or folder absent/deep.json in ",
    "/absent": "There is no file or folder /absent; check the path.",
    "hollow": "hollow is not a trace: it has no meta.json; give the folder that Trace.save() wrote.",
    "empty": "empty is empty; ",
    "words": "words is not a trace: it is neither a folder of Trace.save() nor JSON, and no text of another framework",
}


@pytest.mark.parametrize("words", READING, ids=" ".join)
@pytest.mark.parametrize("path", UNREADABLE)
def test_what_cannot_be_read_is_one_sentence(nbkit, capsys, words, path):
    assert nbkit(*words, path) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"python -m nbkit {words[0]}: {UNREADABLE[path]}") and (out, err.count("\n")) == ("", 1)


WRITING = {
    "report": ("report", "t", "-o", "PATH"),
    "page of a graph": ("graph", "t", "-o", "PATH"),
    "graph": ("graph", "t", "--save", "PATH"),
    "copy": ("load", "t", "--save", "PATH"),
    "rows": ("load", "t", "--frame", "ops", "--csv", "PATH"),
    "run": ("run", "-o", "PATH", "train.py"),
}


def line(name: str, path: str) -> list[str]:
    return [path if word == "PATH" else word for word in WRITING[name]]


@pytest.mark.parametrize("name", WRITING)
def test_a_folder_that_is_made_is_told(nbkit, folder, capsys, name):
    assert nbkit(*line(name, "new/deep/out")) == 0
    assert (folder / "new/deep/out").exists()
    note = f"nbkit: made the folder {folder / 'new/deep'}\n"
    assert note in capsys.readouterr().err
    assert nbkit(*line(name, "new/deep/out")) == 0
    assert "made the folder" not in capsys.readouterr().err


@pytest.mark.parametrize("name", WRITING)
def test_a_file_where_a_folder_is_wanted_is_one_sentence(nbkit, folder, capsys, name):
    assert nbkit(*line(name, "words/out")) == 2
    err = capsys.readouterr().err
    assert f"{folder / 'words'} is no folder; choose another place.\n" in err and err.count("\n") == 1


@pytest.mark.parametrize("name", ["report", "page of a graph", "rows"])
def test_a_folder_where_a_file_is_wanted_is_one_sentence(nbkit, capsys, name):
    assert nbkit(*line(name, "hollow")) == 2
    err = capsys.readouterr().err
    assert "hollow: it is a folder; give the name of a file in it.\n" in err and err.count("\n") == 1


@pytest.mark.parametrize("name", ["graph", "copy", "run"])
def test_something_of_yours_is_not_replaced_by_a_trace(nbkit, folder, capsys, name):
    assert nbkit(*line(name, "words")) == 2
    err = capsys.readouterr().err
    assert "words exists and is not a trace; choose another name" in err and err.count("\n") == 1
    assert (folder / "words").read_text() == "hello\n"
