"""The path of README.md, cell by cell, on models it does not use: each answer names what was planted there."""

from functools import cache
from tempfile import TemporaryDirectory

import pytest

from tests.docs.own_models import CONVOLUTIONS, GPT2
from tests.docs.readme import PATH, blocks, cells
from tests.support.executed import notebook_of, run


@cache
def answers(own: str) -> dict[str, list[str]]:
    """The lines that each cell of the path shows, with `own` in the place of the first cell."""
    with TemporaryDirectory() as folder:
        notebook = run(notebook_of([own, *cells()[1:]]), folder, store_widget_state=False)
    return {cell.source: "\n".join(map(_text, cell.outputs)).splitlines() for cell in notebook.cells}


def _text(output) -> str:
    text: str = output["text"] if output.output_type == "stream" else output["data"]["text/plain"]
    return text.rstrip()


def answer(own: str, about: str) -> list[str]:
    """The lines that the one cell which names `about` shows."""
    (lines,) = [lines for cell, lines in answers(own).items() if about in cell]
    return lines


def test_the_path_asks_where_time_goes_what_is_nan_what_is_wrong_and_what_ran():
    magics = [cell.split()[0] for cell in cells() if cell.startswith("%%")]
    assert magics == ["%%opdoctor", "%%optime", "%%opdiff", "%%optrace"]
    assert cells()[0].startswith("%load_ext nbkit\n") and "def step():" in cells()[0]


def test_the_slow_module_is_named():
    first, *rows, _ = answer(GPT2, "timing.ops")
    assert first.split() == ["module", "op"]
    assert rows[0].startswith("transformer.h.1.mlp.act  aten.") and len(rows) == 3


def test_the_op_that_makes_the_first_nan_is_named():
    _, first, *_ = answer(GPT2, "doctor.findings")
    assert first.split()[:3] == ["aten.log.default", "transformer.ln_f", "Cell"]
    assert "In[1], line 15" in first and "elements are NaN" in first


def test_the_wrong_op_of_a_device_is_named():
    _, worst, second = answer(CONVOLUTIONS, "diff.diffs")
    *where, noise_ratio, status = worst.split()
    assert where == ["aten.sigmoid_backward.default", "gate", "backward"]
    assert float(noise_ratio) > 1_000 and status == "mismatch"
    assert second.endswith("ok")


@pytest.mark.parametrize(("own", "told"), [(GPT2, "aten.tan.default"), (CONVOLUTIONS, "30 aten ops")])
def test_the_trace_of_the_whole_step_is_shown(own, told):
    text = "\n".join(answer(own, "trace  #"))
    assert "\n\noptrace: " in text and "backward" in text and told in text


@pytest.mark.parametrize("own", [GPT2, CONVOLUTIONS])
def test_all_of_it_is_written_into_one_file(own):
    (line,) = answer(own, "%opreport")
    assert line.startswith("report.html: 4 traces, ")


def test_the_readme_shows_what_its_own_cells_print():
    findings, times, diffs = (block.splitlines() for block in blocks(PATH, "text"))
    own = cells()[0]
    assert answer(own, "doctor.findings") == findings
    shown_times, shown_diffs = answer(own, "timing.ops"), answer(own, "diff.diffs")
    assert (len(shown_times), shown_times[0].split()) == (len(times), times[0].split())
    assert [line.split()[-1] for line in shown_diffs] == [line.split()[-1] for line in diffs]
