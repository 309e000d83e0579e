"""What the tools answer, without a client: each answer, and each way in which a call can be wrong."""

import json
import math
import re

import pytest

from nbkit.errors import OptionError
from nbkit.findings.finding import Finding, findings_frame
from nbkit.mcp.answers import MOST_CHARACTERS, MOST_TEXT
from nbkit.mcp.folder import Folder
from nbkit.mcp.server import answered
from nbkit.mcp.tools import TOOLS
from tests.support.fakes import small_trace
from tests.support.jobs import save_job


@pytest.fixture
def ask(folder):
    def ask(tool, **arguments):
        text, is_error = answered(folder, tool, arguments)
        assert not is_error, text
        return text

    return ask


def rows(ask, **arguments):
    return json.loads(ask("query", path="mine", frame="ops", **arguments))


def test_load_says_how_a_trace_was_made_and_what_is_in_it(ask):
    data = json.loads(ask("load", path="mine"))
    assert (data["path"], data["title"], data["made"]["verb"]) == ("mine", "opcheck mine", "opcheck")
    assert data["frames"]["ops"]["rows"] == 8 and "self_time_us" in data["frames"]["ops"]["columns"]
    assert data["captured_op_ids"] == []
    assert "1. error, nan: aten.mm.default: 1 of 2 elements are NaN." in data["brief"]


def test_brief_is_that_of_the_trace_and_as_long_as_asked(ask, folder):
    assert ask("brief", path="mine") == folder.trace("mine").brief()
    assert ask("brief", path="mine", tokens=100) == folder.trace("mine").brief(100)


def test_findings_come_worst_first_and_can_be_chosen(ask):
    data = json.loads(ask("findings", path="mine"))
    assert ([row["rule"] for row in data["rows"]], data["matched"]) == (["nan", "casts"], 2)
    assert data["rows"][0]["step"] == 1 and "module" not in data["rows"][0] and data["rows"][0]["evidence"] == {}
    assert [row["rule"] for row in json.loads(ask("findings", path="mine", severity="hint"))["rows"]] == ["casts"]
    assert json.loads(ask("findings", path="mine", rule="nan", offset=1)) == {"matched": 1, "offset": 1, "rows": []}


def test_query_filters_sorts_and_cuts(ask):
    where = [{"column": "op", "op": "contains", "value": "ATEN"}, {"column": "self_time_us", "op": "above", "value": 4}]
    sort = [{"column": "self_time_us", "descending": True}]
    data = rows(ask, where=where, sort=sort, columns=["op_id", "self_time_us"], limit=2)
    assert data == {
        "frame": "ops", "matched": 4, "offset": 0, "columns": ["op_id", "self_time_us"], "rows": [[6, 62.0], [1, 40.0]]
    }  # fmt: skip
    assert rows(ask, where=where, sort=sort, columns=["op_id"], offset=3)["rows"] == [[2]]
    either = [
        {"any": [{"column": "op_id", "op": "equals", "value": 0}, {"column": "module", "op": "null"}], "not": True}
    ]
    kept = rows(ask, where=either, columns=["op_id", "module"])["rows"]
    assert kept and all(op_id and module is not None for op_id, module in kept)


def test_query_gives_the_meaning_of_columns_instead_of_rows(ask):
    data = rows(ask, columns=["self_time_us"], limit=0)
    assert "rows" not in data and "time" in data["columns"]["self_time_us"]


def test_query_gives_a_thousand_rows_at_most_and_answers_are_bounded(ask, folder):
    data = json.loads(ask("query", path="large", frame="ops", limit=1000, columns=["op_id"]))
    assert (len(data["rows"]), data["matched"]) == (1000, 3000)
    text = ask("query", path="large", frame="ops", limit=1000)
    cut = json.loads(text)
    assert len(text) <= MOST_CHARACTERS and len(cut["rows"]) + cut["left_out_for_size"] == 1000
    assert answered(folder, "query", {"path": "large", "frame": "ops", "limit": 1001}) == (
        "limit=1,001 is out of range; give from 0 to 1,000.", True
    )  # fmt: skip


def test_op_has_its_tensors_and_what_was_found_at_it(ask):
    data = json.loads(ask("op", path="mine", op_id=4))
    assert data["op"]["op_id"] == 4 and data["findings"][0]["rule"] == "nan"
    data = json.loads(ask("op", path="mine", op_id=1))
    assert data["outputs"][0]["shape"] == "[2, 8]" and data["has_script"] is False
    calls = json.loads(ask("op", path="mine", op_id=0))["calls"]
    assert calls == [{"op_id": 1, "op": "aten.addmm.default"}]


def test_diff_says_what_differs(ask):
    assert "findings" not in ask("diff", left="mine", right="mine").lower().split("\n")[0]
    assert "equal" in ask("diff", left="mine", right="mine")
    assert "aten.addmm.default" in ask("diff", left="mine", right="large")


def test_script_is_that_of_a_captured_call(ask):
    (op_id, *_) = json.loads(ask("load", path="faulty"))["captured_op_ids"]
    script = ask("script", path="faulty", op_id=op_id)
    assert script.startswith("# aten.addmm.default, op ") and compile(script, "script", "exec")
    assert json.loads(ask("op", path="faulty", op_id=op_id))["has_script"] is True


def where(*predicates):
    return "query", {"path": "mine", "frame": "ops", "where": [*predicates]}


CODE = "__import__('os').system('touch hacked')"
DEEP = {"column": "op", "op": "null"}
for _ in range(9):
    DEEP = {"all": [DEEP]}
WRONG = [
    (("load", {}), "The argument 'path' is missing: path of the trace"),
    (("laod", {}), "There is no tool 'laod'; did you mean 'load'"),
    (("load", {"pth": "mine"}), "There is no argument 'pth'; did you mean 'path'?"),
    (("load", {"path": 3}), "path is expected to be a string, and this is an integer."),
    (("load", {"path": "nothing"}), "There is no nothing below the root; the traces there are: deep/other, faulty,"),
    (("load", {"path": "."}), ". is a folder and no trace; the traces there are: deep/other, faulty, half"),
    (("load", {"path": "notes.txt"}), "is not a trace"),
    (("load", {"path": "../secret"}), "../secret is outside of the folder that this server may read"),
    (("load", {"path": "mine/../../secret"}), "is outside of the folder that this server may read"),
    (("load", {"path": "link"}), "link is outside of the folder that this server may read"),
    (("load", {"path": "half"}), "half has a link that leads out of the folder that this server may read."),
    (("load", {"path": "/etc/passwd"}), "/etc/passwd is outside of the folder"),
    (("load", {"path": "a\0b"}), "This path cannot be read"),
    (("load", {"path": "x" * 5000}), "… below the root; the traces there are"),
    (("diff", {"left": "mine", "right": "../secret"}), "../secret is outside of the folder"),
    (("brief", {"path": "mine", "tokens": True}), "tokens is expected to be an integer, and this is a boolean."),
    (("findings", {"path": "mine", "severity": "eror"}), "severity='eror' is not known; did you mean 'error'?"),
    (("query", {"path": "mine", "frame": "opps"}), "This trace has no frame 'opps'; did you mean 'ops'?"),
    (("query", {"path": "mine", "frame": "ops", "columns": ["opp"]}), "There is no column 'opp'; the columns of ops"),
    (("query", {"path": "mine", "frame": "ops", "columns": [3]}), "each item of columns is expected to be a string"),
    (("query", {"path": "mine", "frame": "ops", "where": CODE}), "where is expected to be an array, and this is a str"),
    (("query", {"path": "mine", "frame": "ops", "limit": 10**6}), "limit=1,000,000 is out of range"),
    (("query", {"path": "mine", "frame": "ops", "sort": [{"column": CODE}]}), 'There is no column "__import__'),
    (("query", {"path": "mine", "frame": "ops", "sort": [{"by": 1}]}), "Each item of sort is expected as {"),
    (where({"column": CODE, "op": "null"}), "There is no column"),
    (where({"column": "op", "op": CODE, "value": ""}), "A column of this kind knows no"),
    (where({"column": "op", "op": "contains", "value": {"$where": CODE}}), "the value of contains on op is expected"),
    (
        where({"column": "op_id", "op": "above", "value": CODE}),
        "the value of above on op_id is expected to be a number",
    ),
    (where({"column": "op_id", "op": "contains", "value": 3}), "A column of this kind knows no 'contains'"),
    (where({"column": "op", "op": "regex", "value": "(a+)+(?=b)"}), "there is no looking around or back."),
    (where({"column": "op", "op": "regex", "value": "x" * 2000}), "it is too long"),
    (where({"column": "op", "op": "in", "value": [1]}), "The value of in on op is expected to be a list of strings."),
    (where({"column": "op"}), "A predicate needs its op, as in"),
    (where({"column": "op", "op": "null", "code": CODE}), "A predicate has no 'code'"),
    (where({"any": CODE}), "any is expected as"),
    (where(DEEP), "Predicates stand within each other more than 5 deep"),
    (where(*[{"column": "op", "op": "null"}] * 101), "The filter has more than 100 predicates"),
    (("op", {"path": "mine", "op_id": 99}), "op_id=99 is not in the trace; its ops are 0 to 7."),
    (("op", {"path": "mine", "op_id": -1}), "op_id=-1 is out of range; give 0 or more."),
    (("script", {"path": "mine", "op_id": 1}), "The values of op 1 were not captured: only nbkit.opdiff keeps values."),
]


@pytest.mark.parametrize(
    ("call", "sentence"), WRONG, ids=lambda value: str(value)[:50] if isinstance(value, str) else ""
)
def test_what_cannot_be_answered_is_one_sentence_and_runs_nothing(folder, tmp_path, monkeypatch, call, sentence):
    monkeypatch.chdir(tmp_path)
    text, is_error = answered(folder, *call)
    assert is_error and sentence in text and "\n" not in text and "nbkit itself failed" not in text
    assert [*tmp_path.iterdir()] == []


def test_a_script_that_would_need_a_file_is_refused(folder, monkeypatch):
    monkeypatch.setattr("nbkit.capture.calls.script.EMBEDDED_BYTES", 8)
    (op_id, *_) = sorted(folder.trace("faulty").captured)
    text, is_error = answered(folder, "script", {"path": "faulty", "op_id": op_id})
    assert is_error and "too much for a script without a file beside it" in text


def test_nothing_is_written_below_the_root(ask, places):
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in places.rglob("*"))
    for tool, arguments in (
        ("load", {}),
        ("brief", {}),
        ("findings", {}),
        ("op", {"op_id": 1}),
        ("query", {"frame": "ops"}),
    ):
        ask(tool, path="mine", **arguments)
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in places.rglob("*")) == before


def test_traces_inside_a_trace_or_too_deep_are_not_named(tmp_path):
    ask = Folder(tmp_path), "load", {"path": "nothing"}
    assert answered(*ask)[0].endswith("below the root; no folder of Trace.save() is there.")
    for place in ("a", "a/inside", ".hidden/a", "b/c/d/e", "b/c/d/f/g"):
        small_trace().save(tmp_path / place)
    assert answered(*ask)[0].endswith("below the root; the traces there are: a, b/c/d/e.")


def test_texts_of_any_length_and_infinities_have_an_answer(tmp_path):
    trace = small_trace()
    long = Finding("nan", "error", "m" * MOST_TEXT, "a" * (MOST_TEXT + 1), op_id=1)
    findings = findings_frame([long] * 30)
    findings.loc[0, "evidence"] = "no JSON"
    trace.frames["findings"] = findings
    trace.frames["ops"] = trace.ops.assign(self_time_us=[math.inf, -math.inf, math.nan, *range(5)])
    trace.save(tmp_path / "t")
    folder = Folder(tmp_path)
    text, _ = answered(folder, "query", {"path": "t", "frame": "ops", "columns": ["self_time_us"]})
    assert json.loads(text)["rows"][:4] == [["inf"], ["-inf"], [None], [0.0]]
    (row, *_) = json.loads(answered(folder, "findings", {"path": "t"})[0])["rows"]
    assert (row["message"], row["advice"], row["evidence"]) == ("m" * 2_000, "a" * 1_999 + "…", "no JSON")
    text, is_error = answered(folder, "op", {"path": "t", "op_id": 1})
    assert not is_error and re.fullmatch(r"\n… [\d,]+ further characters are left out\.", text[MOST_CHARACTERS:])


def test_a_trace_that_was_written_anew_is_read_anew(tmp_path):
    folder = Folder(tmp_path)
    small_trace(name="first").save(tmp_path / "t")
    first = folder.trace("t")
    assert folder.trace("./t") is first
    small_trace(name="second").save(tmp_path / "t")
    assert folder.trace("t").meta["name"] == "second"


def test_a_root_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(OptionError, match="absent is no folder; give --root a folder"):
        Folder(tmp_path / "absent")


def test_a_failure_of_nbkit_itself_is_told_as_such(folder, monkeypatch):
    monkeypatch.setattr(folder, "trace", lambda path: 1 / 0)
    text, is_error = answered(folder, "brief", {"path": "mine"})
    assert is_error and text.startswith("nbkit itself failed (ZeroDivisionError: division by zero, at nbkit/mcp/")


def test_each_tool_says_what_each_argument_is():
    for tool in TOOLS.values():
        assert tool.description.endswith(".") and set(tool.required) <= set(tool.properties)
        assert all(one["description"] for one in tool.properties.values())


def test_a_job_of_ranks_is_asked_as_one_trace(tmp_path):
    save_job(tmp_path / "runs/job", 3)
    folder = Folder(tmp_path / "runs")

    def ask(tool, **arguments):
        text, is_error = answered(folder, tool, {"path": "job", **arguments})
        return text if is_error or tool == "brief" else json.loads(text)

    known = ask("load")
    assert known["frames"]["ops"]["rows"] == 24 and known["frames"]["ops"]["columns"][0] == "rank"
    assert known["frames"]["ranks"]["rows"] == 4 and "Rank 3 of 4 is missing." in known["brief"]
    assert ask("brief").startswith("3 of 4 ranks: wall time")
    where = [{"column": "rank", "op": "above", "value": 0}, {"column": "op", "op": "contains", "value": "addmm"}]
    sort = [{"column": "self_time_us", "descending": True}]
    answer = ask("query", frame="ops", where=where, sort=sort, columns=["rank", "self_time_us"])
    assert (answer["matched"], answer["rows"]) == (2, [[2, 240.0], [1, 140.0]])
    assert ask("query", frame="ops", limit=0)["columns"]["rank"] == "the rank whose row it is"
    sends = ask("query", frame="collectives", where=[{"column": "is_p2p", "op": "equals", "value": 1}])
    assert sends["matched"] == 0 and ask("query", frame="ranks", columns=["state"])["rows"][3] == ["missing"]
    assert "This job has no frame 'opz'" in ask("query", frame="opz")
    assert "There is no column 'speed'" in ask("query", frame="ops", where=[{"column": "speed", "op": "null"}])
    assert "is a job of 4 ranks" in ask("op", op_id=0)
    assert answered(folder, "op", {"path": "job/rank=1", "op_id": 0})[1] is False
    assert "job" in answered(folder, "load", {"path": "nothing"})[0]


def test_a_link_out_of_the_root_in_a_rank_is_refused(tmp_path):
    save_job(tmp_path / "runs/job", 2)
    small_trace().save(tmp_path / "secret")
    (tmp_path / "runs/job/rank=1/ops.parquet").unlink()
    (tmp_path / "runs/job/rank=1/ops.parquet").symlink_to(tmp_path / "secret/ops.parquet")
    text, is_error = answered(Folder(tmp_path / "runs"), "load", {"path": "job"})
    assert is_error and "has a link that leads out of the folder" in text
