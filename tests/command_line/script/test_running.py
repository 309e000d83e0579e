"""Which script is run, as what, and how its module is loaded with a step."""

import builtins
import sys
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from nbkit.command_line.script.importing import StepFinder
from nbkit.command_line.script.rewriting import NAME
from nbkit.command_line.script.running import RUNPY, Script, compiled, prepared_main, run, script_file, script_module
from nbkit.command_line.script.target import Target
from nbkit.errors import OptionError

# What the tests make and import; a name that is written out would be taken for a dependency.
WORK, BROKEN = "made_here.work", "made_here.broken"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a __main__ and a module; what Python knows of its main module is as before afterwards."""
    folder = tmp_path / "made_here"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "__main__.py").write_text("from . import work")
    (folder / "work.py").write_text("def step():\n    return 7\nresult = step()\n")
    (folder / "broken.py").write_text("def step(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["nbkit"])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    for name in ("made_here", "made_here.work", "made_here.broken", "made_here.bad", "made_here.__main__"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(builtins, NAME, None, raising=False)
    return folder


def test_a_file_is_run_by_its_name_and_a_module_by_that_of_its_file(package: Path) -> None:
    assert script_file("made_here/work.py", ["-a"]) == Script(package / "work.py", None, ("made_here/work.py", "-a"))
    script = script_module("made_here.work", ["-b"])
    assert (script.path, script.name) == (package / "work.py", "made_here.work")
    assert script.arguments == (str(package / "work.py"), "-b")
    assert script_module("made_here", []).path == package / "__main__.py"
    assert script_file("made_here/work.py", []).name == "work.py"


@pytest.mark.parametrize(
    ("find", "name", "sentence"),
    [
        (script_file, "made_here", "made_here is a folder; give the script in it."),
        (script_file, "no.py", "There is no no.py; give a Python script, or -m and the name of a module."),
        (script_module, "made_here.no", "There is no module 'made_here.no' that can be run from its source here"),
        (script_module, "no_such.part", "There is no module 'no_such.part' that can be run"),
        (script_module, "sys", "There is no module 'sys' that can be run"),
    ],
)
def test_what_cannot_be_run_is_said(package: Path, find, name, sentence) -> None:
    with pytest.raises(OptionError) as error:
        find(name, [])
    assert str(error.value).startswith(sentence)


def test_the_main_module_is_as_python_makes_it(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = script_module("made_here.work", [])
    monkeypatch.setattr(sys, "path", ["first", "second"])
    main = prepared_main(script_file("made_here/work.py", ["x"]))
    assert (main.__name__, main.__file__, main.__spec__, main.__cached__) == (
        *("__main__", str(package / "work.py"), None, None),
    )
    assert (sys.argv, sys.path, sys.modules["__main__"]) == (["made_here/work.py", "x"], [str(package), "second"], main)
    main = prepared_main(module)
    assert (main.__package__, main.__spec__.name, sys.path) == ("made_here", "made_here.work", [str(package), "second"])
    assert main.__cached__ == main.__spec__.cached


def test_a_script_runs_as_a_step_or_with_one_in_it(package: Path) -> None:
    met = []

    @contextmanager
    def step():
        met.append("step")
        yield

    script = script_file("made_here/work.py", [])
    run(script, compiled(script, None), step, is_step=True)
    assert (met, sys.modules["__main__"].result) == (["step"], 7)
    run(script, compiled(script, Target("step", name="step")), step, is_step=False)
    assert met == ["step"] * 2
    run(script, compiled(script, None), step, is_step=False)
    assert met == ["step"] * 2
    assert getattr(builtins, NAME) is step


@pytest.mark.parametrize(
    ("find", "name", "above"),
    [(script_file, "made_here/bad.py", []), (script_module, "made_here.bad", [(RUNPY, "<module>")])],
)
def test_an_error_is_shown_with_the_frames_that_python_shows(package: Path, find, name, above) -> None:
    (package / "bad.py").write_text("def fail():\n    raise KeyError('no')\nfail()\n")
    shown = []
    sys.excepthook = lambda kind, error, traceback: shown.append((kind, traceback))
    script = find(name, [])
    work = partial(run, script, compiled(script, None), lambda: None, is_step=False)
    with pytest.raises(KeyError) as caught:
        exec(compile("work()", RUNPY, "exec"), {"work": work})  # as `python -m nbkit` is run
    sys.excepthook(KeyError, caught.value, caught.value.__traceback__)
    ((kind, place),) = shown
    frames = []
    while place is not None:
        frames.append((place.tb_frame.f_code.co_filename, place.tb_frame.f_code.co_name))
        place = place.tb_next
    bad = str(package / "bad.py")
    assert (kind, frames) == (KeyError, [*above, (bad, "<module>"), (bad, "fail")])


def test_a_script_that_is_no_python_is_shown_without_any_frame(package: Path) -> None:
    shown = []
    sys.excepthook = lambda kind, error, traceback: shown.append((kind, traceback))
    with pytest.raises(SyntaxError) as caught:
        compiled(script_file("made_here/broken.py", []), None)
    assert caught.value.filename == str(package / "broken.py")
    sys.excepthook(SyntaxError, caught.value, caught.value.__traceback__)
    assert shown == [(SyntaxError, None)]


@pytest.mark.parametrize("by_file", [False, True])
def test_a_module_that_the_script_imports_is_loaded_with_its_step(package: Path, by_file: bool) -> None:
    met = []

    @contextmanager
    def step():
        met.append("step")
        yield

    where = {"file": package / "work.py"} if by_file else {"module": "made_here.work"}
    finder = StepFinder(Target("step", name="step", **where))
    wanted = package / "work.py" if by_file else "made_here.work"
    assert finder.problem == f"the script never imported {wanted}"
    sys.meta_path.insert(0, finder)
    setattr(builtins, NAME, step)
    assert (import_module(WORK).result, met, finder.problem) == (7, ["step"], None)


def test_a_module_without_the_step_is_loaded_as_it_is(package: Path) -> None:
    finder = StepFinder(Target("train", name="train", module="made_here.work"))
    sys.meta_path.insert(0, finder)
    assert import_module(WORK).result == 7
    known = "known are step. Of another module: MODULE:FUNCTION"
    assert finder.problem == f"{package / 'work.py'} defines no function 'train'; {known}"


def test_a_module_that_is_no_python_fails_as_without_us(package: Path) -> None:
    sys.meta_path.insert(0, StepFinder(Target("step", name="step", module="made_here.broken")))
    with pytest.raises(SyntaxError) as error:
        import_module(BROKEN)
    assert error.value.filename == str(package / "broken.py")


def test_a_part_of_nbkit_is_no_target() -> None:
    with pytest.raises(OptionError, match="^nbkit.errors is part of what nbkit itself has loaded; name a function"):
        StepFinder(Target("", name="nearest", module="nbkit.errors"))
