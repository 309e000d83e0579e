"""`run`: which steps are recorded, where they go, and how it ends."""

import re
import sys

import pytest

from nbkit.trace.trace import Trace
from tests.command_line.scripts import LOOP_LINE, STEP_LINE


def steps(trace: Trace) -> int:
    return trace.ops["op"].tolist().count("torch.optim.SGD.step")


def test_the_whole_script_is_recorded_and_sees_what_python_shows_it(nbkit, folder, capsys):
    assert nbkit("run", "-o", "whole", "train.py", "-o", "--lr", "3") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == f"['train.py', '-o', '--lr', '3'] {folder} {folder / 'train.py'} __main__ None"
    assert "\n\noptrace train.py: " in err and err.endswith("saved 1 trace to " + str(folder / "whole") + "\n")
    assert steps(Trace.load(folder / "whole")) == 4


@pytest.mark.parametrize("step", ["Trainer.step", f":{LOOP_LINE}", f"train.py:{LOOP_LINE + 2}"])
def test_a_step_is_a_call_or_a_pass_through_a_loop(nbkit, folder, step):
    assert nbkit("run", "-q", "-o", "one", "--step", step, "--skip", "1", "train.py") == 0
    trace = Trace.load(folder / "one")
    assert (steps(trace), trace.complete, trace.meta["name"]) == (1, True, f"train.py {step}")
    assert f"train.py:{STEP_LINE}" in set(trace.ops["source"])


def test_several_steps_go_to_a_folder_each(nbkit, folder):
    assert nbkit("run", "-q", "-o", "some", "--step", "Trainer.step", "--skip", "1", "--steps", "2", "train.py") == 0
    assert sorted(path.name for path in (folder / "some").iterdir()) == ["step=1", "step=2"]
    assert steps(Trace.load(folder / "some" / "step=2")) == 1


def test_steps_of_a_timing_are_its_repeats(nbkit, folder):
    words = ("run", "-q", "--verb", "optime", "-o", "timed", "--step", "Trainer.step", "-r", "3", "train.py")
    assert nbkit(*words) == 0
    trace = Trace.load(folder / "timed")
    assert (trace.meta["warmup"], trace.meta["repeats"], trace.samples["repeat"].nunique()) == (1, 3, 3)


@pytest.mark.parametrize("verb", ["optime", "opdoctor"])
def test_a_whole_script_is_timed_in_the_one_run_that_it_has(nbkit, folder, verb):
    assert nbkit("run", "-q", "--verb", verb, "-o", "timed", "train.py") == 0
    trace = Trace.load(folder / "timed")
    assert (trace.meta["verb"], trace.meta["complete"], steps(trace) > 1) == (verb, True, True)


def test_the_script_ends_after_the_steps_if_asked(nbkit, folder, capsys):
    assert nbkit("run", "-q", "-o", "one", "--step", "Trainer.step", "--stop-after", "train.py") == 0
    assert (capsys.readouterr().out, steps(Trace.load(folder / "one"))) == ("", 1)


@pytest.mark.parametrize("step", ["helpers:work", "helpers.py:4"])
def test_a_step_of_an_imported_module(nbkit, folder, step):
    assert nbkit("run", "-q", "-o", "one", "--step", step, "user.py") == 0
    adds = Trace.load(folder / "one").ops["op"].tolist().count("aten.add.Tensor")
    assert adds == (2 if step == "helpers:work" else 1)


@pytest.mark.parametrize(("flags", "status"), [([], 0), (["--fail-on-findings"], 1)])
def test_findings_are_an_exit_status_if_asked(nbkit, folder, flags, status):
    assert nbkit("run", "-q", "--verb", "opcheck", *flags, "-o", "found", "broken.py") == status
    assert Trace.load(folder / "found").findings["rule"].iloc[0] == "inf"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--step", "helpers:wrok", "user.py"], r"never met: .*helpers\.py defines no function 'wrok'; .* 'work'"),
        (["--step", "absent:work", "user.py"], "--step absent:work was never met: the script never imported absent."),
        (["--step", "items", "train.py"], "items is a generator"),
        (["--step", "Trainer.step", "--skip", "9", "train.py"], "ran 4 times only, and --skip 9 leaves that out"),
    ],
)
def test_a_step_that_is_never_met_is_said(nbkit, folder, capsys, words, sentence):
    assert nbkit("run", "-o", "none", *words) == 2
    assert re.search(sentence, capsys.readouterr().err)
    assert not (folder / "none").exists()


def test_a_function_that_is_never_called_is_said_with_the_others(nbkit, folder, capsys):
    (folder / "idle.py").write_text("def step(): pass\ndef train(): pass\ntrain()\n")
    assert nbkit("run", "-o", "none", "--step", "step", "idle.py") == 2
    sentence = "nbkit: --step step was never met: it was never called; the script also defines train.\n"
    assert capsys.readouterr().err == sentence


@pytest.mark.parametrize(
    ("source", "step", "sentence"),
    [
        ("import helpers", "helpers:work", "--step helpers:work was never met: it was never called."),
        ("for n in []: pass", ":1", "--step :1 was never met: the loop had no pass."),
        ("open('t', 'w').close()", None, "t exists and is not a trace"),
    ],
    ids=["not called", "no pass", "no place"],
)
def test_a_script_that_leaves_no_trace_says_why(nbkit, folder, capsys, source, step, sentence):
    (folder / "idle.py").write_text(source)
    assert nbkit("run", "-q", "-o", "t", *(["--step", step] if step else []), "idle.py") == 2
    err = capsys.readouterr().err
    assert err.startswith("nbkit: ") and sentence in err and err.count("\n") == 1


def test_a_step_that_has_not_ended_with_the_script_is_said(nbkit, folder, capsys):
    source = "import torch\ndef steps():\n    for _ in range(2):\n        yield torch.ones(2) + 1\n"
    (folder / "waiting.py").write_text(f"{source}made = steps()\nnext(made)\n")
    assert nbkit("run", "-q", "-o", "t", "--step", ":3", "waiting.py") == 2
    sentence = "nbkit: A step had not ended when the script was over, so it is not recorded.\n"
    assert capsys.readouterr().err == sentence
    sys.modules["__main__"].made.close()


def test_fewer_steps_than_asked_for_are_kept_and_said(nbkit, folder, capsys):
    assert nbkit("run", "-q", "-o", "some", "--step", "Trainer.step", "--steps", "6", "train.py") == 0
    assert capsys.readouterr().err == (
        "nbkit: --step Trainer.step ran 4 times only, so 2 of the steps asked for are missing.\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "t", "absent.py"], "There is no absent.py; give a Python script"),
        (["-o", "t", "."], "is a folder"),
        (["-o", "t", "-m", "absent"], "There is no module 'absent'"),
        (["train.py"], "give -o TRACE_DIR"),
        (["-o", "t"], "give a script to run"),
        (["-o", "train.py", "train.py"], "exists and is not a trace"),
        (["-o", "train.py/t", "train.py"], "train.py is no folder; choose another place."),
        (["-o", "t", "--step", "Trainer.stpe", "train.py"], "no function 'Trainer.stpe'; did you mean 'Trainer.step'"),
        (["-o", "t", "--step", ":2", "train.py"], f"in no loop; its loops begin at line {LOOP_LINE}."),
        (["-o", "t", "--step", "no.py:2", "train.py"], "--step no.py: there is no such file"),
        (["-o", "t", "--step", "a b", "train.py"], "--step 'a b' names no code"),
        (["-o", "t", "--step", "torch:f", "train.py"], "torch is part of what nbkit itself has loaded"),
        (["-o", "t", "--steps", "2", "train.py"], "--steps is about the steps that --step names"),
        (["-o", "t", "--steps", "0", "train.py"], "'0' is not a count; give a whole number from 1 up."),
        (["-o", "t", "--memory", "train.py"], "--memory is an option of optime"),
        (["-o", "t", "--setp", "x", "train.py"], "unknown option '--setp'; did you mean '--step'"),
        (["-o", "t", "--verb", "optrcae", "train.py"], "--verb 'optrcae' is not known; did you mean 'optrace'"),
        (["-o", "t", "--values", "all", "train.py"], "values='all' is not known"),
    ],
)
def test_bad_use_is_one_sentence_before_the_script_runs(nbkit, capsys, words, sentence):
    assert nbkit("run", *words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("python -m nbkit run: ") and sentence in err
    assert (out, err.count("\n")) == ("", 1)


def test_several_steps_need_a_folder_of_their_own(nbkit, folder, capsys):
    (folder / "full").mkdir()
    (folder / "full/mine").touch()
    assert nbkit("run", "-o", "full", "--step", "Trainer.step", "--steps", "2", "train.py") == 2
    assert "full is not empty, and several steps go to a folder of their own" in capsys.readouterr().err


def test_each_process_of_a_launcher_has_its_own_folder(nbkit, folder, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert nbkit("run", "-q", "-o", "all", "user.py") == 0
    assert Trace.load(folder / "all" / "rank=1").complete


def test_the_help_of_a_verb_has_its_options(nbkit, capsys):
    assert nbkit("run", "--verb", "optime", "--help") == 0
    text = capsys.readouterr().out.replace("-w N,", "-w,")  # which Python 3.13 leaves out
    assert "--memory" in text and "-w, --warmup N" in text and "--values" not in text
