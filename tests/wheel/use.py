"""nbkit used where it is installed and nothing else is: what a newcomer does, in an empty folder.

`python -I use.py CELLS`: CELLS is a JSON list of the cells of README.md's path. Runs without this repository.
"""

import json
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module, metadata
from pathlib import Path

import torch
from jupyter_client.manager import start_new_kernel

import nbkit

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SCRIPT = "import torch\nfor _ in range(3):\n    (torch.ones(4, 4) @ torch.ones(4, 4)).sum()\nprint('ran')\n"


def imported() -> str:
    """It is the installed one; every module and every public name can be had."""
    assert Path(nbkit.__file__).is_relative_to(sys.prefix), nbkit.__file__
    assert nbkit.__version__ == metadata.version("nbkit-torch")
    modules = [
        module.name for module in pkgutil.walk_packages(nbkit.__path__, "nbkit.") if "__main__" not in module.name
    ]
    for name in modules:
        import_module(name)
    names = [name for name in dir(nbkit) if getattr(nbkit, name) is not None]
    return f"{len(modules)} modules, {len(names)} names"


def recorded() -> str:
    """A trace is recorded, saved, loaded and written as a report."""
    with nbkit.optrace(values="stats") as trace:
        torch.nn.Linear(4, 4)(torch.randn(2, 4)).sum().backward()
    loaded = nbkit.load(trace.save("trace"))
    assert loaded.ops.equals(trace.ops)
    page = nbkit.opreport(loaded, path="trace.html").read_text(encoding="utf-8")
    assert "aten.addmm.default" in page and "</html>" in page
    return f"{len(trace.ops)} ops, a report of {len(page):,} characters"


def run_from_a_terminal() -> str:
    """`python -m nbkit` helps, runs a script and shows its trace."""
    Path("train.py").write_text(SCRIPT, encoding="utf-8")
    assert "run" in command("--help") and "opdiff" in command("run", "--help")
    assert command("run", "-o", "third", "--step", ":2", "--skip", "2", "train.py") == "ran\n"
    assert "aten.mm.default" in command("load", "third", "--frame", "ops")
    return command("info").splitlines()[0]


def command(*words: str) -> str:
    """What `python -m nbkit WORDS` prints."""
    return subprocess.run(
        [sys.executable, "-I", "-m", "nbkit", *words], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def shown_in_a_notebook() -> str:
    """The cells of the path run in a kernel; the magics show widgets below their twins."""
    manager, client = start_new_kernel(kernel_name="python3")
    outputs: list[dict[str, object]] = []
    try:
        for cell in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
            reply = client.execute_interactive(cell, timeout=120, output_hook=lambda m: outputs.append(m["content"]))
            assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    shown = [
        content["data"].keys() for content in outputs if {WIDGET_VIEW, "text/html"} & content.get("data", {}).keys()
    ]
    assert [WIDGET_VIEW in data for data in shown] == [False, True] * 5 + [False]  # the last links the report
    assert any("aten.div.Tensor" in str(content.get("text")) for content in outputs)
    return f"{len(shown) // 2} widgets"


@cache
def recorder_build() -> "subprocess.Popen[bytes] | None":
    """The build of the recorder, which the first call begins: it takes the longest. None where there is no compiler."""
    if shutil.which("c++") is None:
        return None
    return subprocess.Popen([sys.executable, "-I", "-m", "nbkit.capture.native.build"], stdout=subprocess.DEVNULL)


def recorded_natively() -> str:
    """Where there is a compiler, the recorder is built from the sources in the wheel, and used."""
    build = recorder_build()
    if build is None:
        return "not built: there is no compiler"
    assert build.wait() == 0
    assert Path(os.environ["NBKIT_CACHE"]) in nbkit.build_recorder().parents  # it is there, so nothing is built again
    with nbkit.optrace() as trace:
        torch.ones(2) + 1
    assert trace.meta["recorder"] == "observer"
    return "built and used"


STEPS: tuple[Callable[[], str], ...] = (imported, recorded, run_from_a_terminal, shown_in_a_notebook, recorded_natively)

if __name__ == "__main__":
    recorder_build()
    for step in STEPS:
        print(f"{step.__name__.replace('_', ' ')}: {step()}", flush=True)
