"""What an example leaves behind: what it prints, and its frames."""

from docs.generator.examples import run
from docs.generator.frame_page import frame_page, unit
from docs.generator.signatures import signature
from nbkit.schema import TIMINGS, Column

EXAMPLE = """\
from nbkit.schema import MEMORY, OPS, TIMINGS
from nbkit.trace.trace import Trace
mine, others = Trace({"memory": MEMORY.frame()}, {"verb": "optime"}), Trace({"ops": OPS.frame()}, {"verb": "optrace"})
times = TIMINGS.frame([{"op_id": n, "repeats": 2, "median_us": 0.5} for n in range(4)])
part = times[times["op_id"] > 2]
print(len(part))
"""


def test_an_example_gives_what_it_prints_and_the_whole_frames_of_its_verb(tmp_path):
    (tmp_path / "optime.py").write_text(EXAMPLE)
    example = run(tmp_path / "optime.py")
    assert (example.name, example.printed, example.notes) == ("optime", "1\n", "")
    assert {name: len(frame) for name, frame in example.frames.items()} == {"memory": 0, "timings": 4}


def test_the_page_of_a_frame_shows_rows_without_times(tmp_path):
    (tmp_path / "optime.py").write_text(EXAMPLE)
    text = frame_page(TIMINGS, [run(tmp_path / "optime.py")], tmp_path)
    assert (
        "One row per op of one run, timed over all repeats of the step. Filled by [optime](../../verbs/optime.md)."
        in text
    )
    assert "| `repeats` | int64 | no |  | how many repeats had this op at this position |" in text
    assert "| column | row 0 | row 1 | row 3 |" in text
    assert "| `op_id` | 0 | 1 | 3 |" in text
    assert "| `median_us` | ... | ... | ... |" in text
    assert "| `min_us` | null | null | null |" in text


def test_units_are_read_from_names():
    assert [unit(Column(name, "float64", "")) for name in ("self_time_us", "size_bytes", "held_fraction", "numel")] == [
        "microseconds",
        "bytes",
        "share, 0 to 1",
        "",
    ]


def test_a_signature_has_names_and_defaults():
    def short(op: str, *, count: str = "3", **more: str) -> None: ...

    assert signature(short, "nbkit.short") == 'nbkit.short(op, *, count="3", **more)'
    assert signature(short, "x" * 90).splitlines()[1:] == ["    op,", "    *,", '    count="3",', "    **more,", ")"]
