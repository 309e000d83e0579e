"""The program itself: its list of subcommands, and what is said without one."""

import pytest

from nbkit.command_line.main import COMMANDS, overview
from nbkit.verbs.registry import RECORDERS


def test_the_overview_has_an_example_of_each(nbkit, capsys):
    assert [nbkit("--help"), nbkit()] == [0, 2]
    assert capsys.readouterr().out == f"{overview()}\n" * 2
    assert all(f"python -m nbkit {name} " in overview() for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_has_examples_and_its_exit_status_is_0(nbkit, capsys, name):
    assert nbkit(name, "--help") == 0
    out, err = capsys.readouterr()
    assert out.count(f"    python -m nbkit {name}") >= 3
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("verb", RECORDERS)
def test_the_help_of_a_step_fits_a_terminal(nbkit, capsys, verb):
    assert nbkit("run", "--verb", verb, "--help") == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_a_root_for_an_assistant_that_is_no_folder_is_refused(nbkit, capsys):
    assert nbkit("mcp", "--root", "absent") == 2
    assert "absent is no folder; give --root a folder with traces in it.\n" in capsys.readouterr().err


def test_a_mistyped_subcommand_names_the_nearest(nbkit, capsys):
    assert nbkit("rnu", "train.py") == 2
    assert capsys.readouterr().err == "python -m nbkit: 'rnu' is no subcommand; did you mean 'run'?\n"
