"""What `import nbkit` and reading a file bring in: no torch, no widgets."""

import subprocess
import sys

import pytest

from tests.support.fakes import small_trace
from tests.support.graph_texts import ONEFLOW, PADDLE

HEAVY = "{'torch', 'IPython', 'plotly', 'anywidget', 'matplotlib'}"


@pytest.fixture
def folder(tmp_path):
    small_trace().save(tmp_path / "trace")
    (tmp_path / "net.log").write_text(ONEFLOW)
    (tmp_path / "net.txt").write_text(PADDLE)
    return tmp_path


def imported(code: str, folder) -> str:
    """Which heavy packages a fresh process has imported after `code`."""
    source = f"import sys, nbkit\n{code}\nprint(sorted({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", source], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_reading_files_imports_no_torch(folder):
    by_itself = "from nbkit.views.static_html.text import summary\nsummary(nbkit.Trace({}))"
    code = "for name in ('trace', 'net.log', 'net.txt'): nbkit.load(name).summary()\nnbkit.opgraph('net.log')"
    assert imported(f"{by_itself}\n{code}", folder) == "[]"


def test_the_command_line_reads_files_without_torch(folder):
    code = (
        "from nbkit.command_line.main import main\n"
        "assert [main(words.split()) for words in ('load trace', 'diff trace trace', 'info trace')] == [0, 0, 0]"
    )
    assert imported(code, folder) == "[]"
    assert "torch" not in imported(code.split("\n")[0] + "\nmain('report trace -o r.html'.split())", folder)


def test_the_names_for_recording_bring_torch(folder):
    assert imported("nbkit.optrace", folder) == "['torch']"


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_the_first_recording_may_begin_without_gradients(mode, folder):
    code = (
        "import torch\n"
        f"with torch.{mode}():\n"
        "  for verb in (nbkit.opcheck, nbkit.opdiff, nbkit.optrace, nbkit.optime):\n"
        "    with verb() as trace: torch.ones(2).exp()\n"
        "    assert 'aten.exp.default' in trace.ops['op'].tolist()"
    )
    assert "torch" in imported(code, folder)
