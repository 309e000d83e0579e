"""What profilers write that is no JSON is read as it is meant; what goes on behind a trace is read or counted."""

import json

import pytest
import torch
from torch.profiler import profile

import nbkit
from nbkit import TraceError
from tests.readers.exports import slice_

OPS = [slice_("cpu_op", f"aten::op{number}", 10.0 * number, 5.0, External_id=number + 1) for number in range(3)]
LAST = slice_("cpu_op", "aten::last", 40.0, 5.0, Name="VALUE")
WHOLE = json.dumps({"traceEvents": [*OPS, LAST], "traceName": "t"})
LIST = json.dumps(OPS)


def loaded(tmp_path, text):
    path = tmp_path / "t.json"
    path.write_text(text)
    return nbkit.load(path)


def frame_named(name):
    """Returns a function of a file of this name, as a notebook or an exec() makes it."""
    space = {}
    exec(compile("def run():\n    return torch.ones(3).sum()\n", name, "exec"), {"torch": torch}, space)
    return space["run"]


@pytest.mark.parametrize("name", ['{"device": "cpu", "dtype": "float32"}', 'say "hello"', '"'])
def test_quotes_of_torchs_own_frames(tmp_path, name):
    run = frame_named(name)
    with profile(with_stack=True) as recorded:
        run()
    recorded.export_chrome_trace(str(tmp_path / "t.json"))
    text = (tmp_path / "t.json").read_text()
    line = next(number for number, line in enumerate(text.splitlines(), 1) if f"{name}(1): run" in line)
    trace = nbkit.load(tmp_path / "t.json")
    names = [event.name() for event in recorded.profiler.kineto_results.events()]
    expected = sorted(name.replace("::", ".") for name in names if name.startswith("aten::"))
    assert sorted(trace.ops.query("level == 'aten'")["op"]) == expected
    assert f"the first in 'name', line {line:,}." in trace.meta["notes"][0]
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(text)


def test_backslashes_of_windows(tmp_path):
    text = json.dumps({"traceEvents": [*OPS, {**LAST, "cat": "python_function", "name": "PATH(7): run"}]})
    trace = loaded(tmp_path, text.replace("PATH", r"C:\Users\ann\new\train.py"))
    assert len(trace.ops) == 3 and "backslashes" in trace.meta["notes"][0]


@pytest.mark.parametrize(
    "value", ["inf", "-inf", "nan", "-nan(ind)", "None", '"a "quoted" word"', '"D:\\Ux"', "[1,, 2]"]
)
@pytest.mark.parametrize("behind", ["", LIST[1:-1] + ","])
def test_a_value_that_is_no_json(tmp_path, value, behind):
    """In the last event, too, where the file merely seemed to be cut off."""
    text = json.dumps({"traceEvents": [*OPS, LAST]}).replace('"VALUE"', value)
    trace = loaded(tmp_path, text.replace("[", f"[{behind}", 1))
    assert trace.ops["op"].iloc[-1] == "aten.last"
    assert [note for note in trace.meta["notes"] if note.startswith("The file is no JSON in 1 event")]


@pytest.mark.parametrize("end", ["", ",", ",\n", "\n"])
def test_a_list_without_an_end_is_legal(tmp_path, end):
    trace = loaded(tmp_path, LIST[:-1] + end)
    assert len(trace.ops) == 3 and "has no end" in trace.meta["notes"][0]


@pytest.mark.parametrize("cut", [LIST[:-3], WHOLE[: WHOLE.index("]")], WHOLE[:-1]])
def test_what_is_cut_off_is_told_so(tmp_path, cut):
    with pytest.raises(TraceError, match="is cut off after"):
        loaded(tmp_path, cut)


def test_a_missing_colon_is_named_by_its_line_and_field(tmp_path):
    text = json.dumps({"traceEvents": [*OPS, LAST]}, indent=1).replace('"cat": "cpu_op"', '"cat" "cpu_op"', 1)
    line = text[: text.index('"cat" ')].count("\n") + 1
    with pytest.raises(TraceError, match=rf"is damaged after 0 events.*\(line {line}\): expecting ':' delimiter"):
        loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "ops", "note"),
    [
        (LIST + LIST.replace("::op", "::again"), 6, "The file holds 2 JSON documents"),
        (WHOLE + "\n" + WHOLE + WHOLE, 12, "The file holds 3 JSON documents"),
        (WHOLE + '{"left": 1}', 4, "The file holds 2 JSON documents"),
        (WHOLE + "\nTrace written.\n", 4, "15 characters behind the trace, from line 2 on, were left out."),
        (WHOLE + LIST[:-30], 6, "is damaged"),
    ],
)
def test_what_stands_behind_the_first_document(tmp_path, text, ops, note):
    trace = loaded(tmp_path, text)
    assert len(trace.ops) == ops and note in trace.meta["notes"][0]


def test_what_stands_behind_a_trace_of_nbkit_is_counted(tmp_path):
    with nbkit.optime() as trace:
        torch.ones(3).sum()
    trace.export_chrome_trace(tmp_path / "own.json")
    text = (tmp_path / "own.json").read_text()
    again = loaded(tmp_path, text + text)
    assert len(again.ops) == len(trace.ops)
    assert (
        f"{len(text):,} characters behind the trace, from line {text.count(chr(10)) + 1} on, were left out."
        in again.meta["notes"]
    )


def other_files(folder):
    """Writes what else torch's profiler exports of a training step; returns path and kind of each."""
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(folder / "et.json"))
    observer.start()
    torch.ones(3).sum()
    observer.stop()
    observer.unregister_callback()
    with profile(profile_memory=True, record_shapes=True, with_stack=True) as recorded:
        torch.nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()
    (folder / "table.txt").write_text(recorded.key_averages().table())
    recorded.export_memory_timeline(str(folder / "memory.json"), device="cpu")
    recorded.export_memory_timeline(str(folder / "memory.raw.json.gz"), device="cpu")
    (folder / "commas.json").write_text((folder / "et.json").read_text().rstrip("} \n") + ",,]}")
    torch.save({"segments": []}, folder / "saved.pt")


@pytest.mark.filterwarnings("ignore:.*export_memory_timeline:FutureWarning")
def test_other_kinds_are_refused_by_their_names(tmp_path):
    other_files(tmp_path)
    (tmp_path / "memory.html").write_text("<html>\n<head><title>GPU Memory Timeline HTML</title></head></html>")
    (tmp_path / "stacks.txt").write_text("train.py(9): main;net.py(3): forward 23\ntrain.py(9): main 4\n")
    (tmp_path / "run.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    (tmp_path / "ort.json").write_text('[{"cat" : "Session","ph" : "X","name" :"model_loading_uri"}]')
    kinds = {"et.json": "execution trace", "commas.json": "execution trace", "table.txt": "table of torch.profiler"}
    kinds |= dict.fromkeys(("memory.json", "memory.raw.json.gz", "memory.html"), "memory timeline of torch.profiler")
    kinds |= {"stacks.txt": "list of stacks", "ort.json": "profile of onnxruntime", "run.db": "SQLite database"}
    for name, kind in (kinds | {"saved.pt": "zip archive"}).items():
        with pytest.raises(TraceError, match=rf"{name} is an? {kind}.*; ") as raised:
            nbkit.load(tmp_path / name)
        assert "\n" not in str(raised.value)
