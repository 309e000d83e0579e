"""The server over standard input and output, asked by the official client."""

import asyncio
import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

import nbkit
from nbkit.command_line.mcp import MCP
from tests.processes import PYTHON
from tests.support.installed import needs

pytestmark = needs("mcp")
SOURCES = str(Path(__file__).parents[2])


def asked(root, *calls):
    """The tools that a server of the root lists, and the text and kind of each answer."""
    import mcp

    command = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "nbkit", "mcp", "--root", str(root)], env={"PYTHONPATH": SOURCES}
    )

    async def run():
        async with mcp.Client(command, read_timeout_seconds=120) as client:
            tools = (await client.list_tools()).tools
            answers = [await client.call_tool(name, arguments) for name, arguments in calls]
            return tools, [(answer.content[0].text, bool(answer.is_error)) for answer in answers]

    return asyncio.run(run())


@pytest.mark.cold
def test_a_client_lists_and_calls_every_tool(places):
    captured = min(nbkit.load(places / "runs/faulty").captured)
    calls = {
        "load": {"path": "mine"},
        "brief": {"path": "mine"},
        "findings": {"path": "mine"},
        "query": {"path": "large", "frame": "ops", "limit": 1000, "columns": ["op_id"]},
        "op": {"path": "mine", "op_id": 4},
        "diff": {"left": "mine", "right": "deep/other"},
        "script": {"path": "faulty", "op_id": captured},
    }
    wrong = [
        ("load", {"path": "../secret"}),
        ("load", {"path": "link"}),
        ("query", {"path": "mine", "frame": "ops", "limit": 1001}),
        ("query", {"path": "mine", "frame": "ops", "where": "__import__('os').abort()"}),
        ("query", {"path": "mine", "frame": "ops", "where": [{"column": "op", "op": "eval", "value": "1"}]}),
        ("brief", {}),
        ("delete", {"path": "mine"}),
    ]
    tools, answers = asked(places / "runs", *calls.items(), *wrong)
    assert [tool.name for tool in tools] == [*calls]
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools)
    right, refused = answers[: len(calls)], answers[len(calls) :]
    assert [is_error for _, is_error in right] == [False] * len(calls), right
    assert len(json.loads(right[3][0])["rows"]) == 1000
    assert "\n\nopcheck mine: " in right[1][0] and right[6][0].startswith("# aten.addmm.default, op ")
    assert all(is_error and "\n" not in text and text.endswith((".", "?")) for text, is_error in refused), refused


def run(code, *words, python=(sys.executable,)):
    return subprocess.run([*python, "-c", code, *words], capture_output=True, text=True, input="", timeout=120)


@pytest.mark.cold
def test_without_the_package_it_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['mcp'] = None; from nbkit.command_line.main import main; sys.exit(main(sys.argv[1:]))"
    )
    done = run(code, "mcp", "--root", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == ('python -m nbkit mcp: the package mcp is not installed: pip install "nbkit-torch[mcp]".\n')


def test_it_ends_with_its_input_and_a_root_that_is_absent_is_one_sentence(tmp_path):
    code = "import sys; from nbkit.command_line.main import main; sys.exit(main(sys.argv[1:]))"
    served = run(code, "mcp", "--root", str(tmp_path), python=PYTHON)
    assert (served.returncode, run(code, "mcp", python=PYTHON).stdout) == (0, "")
    absent = run(code, "mcp", "--root", str(tmp_path / "absent"), python=PYTHON)
    assert absent.returncode == 2 and absent.stderr.endswith("give --root a folder with traces in it.\n")


@pytest.mark.cold
def test_the_other_subcommands_import_neither_the_package_nor_the_server():
    code = "import sys; from nbkit.command_line.main import main; main(['--help'])"
    code += "\nprint({'mcp', 'nbkit.mcp'} & {*sys.modules})"
    assert run(code).stdout.endswith("set()\n")


def test_a_terminal_is_told_which_folder_is_served(folder, monkeypatch):
    served, said = [], []
    monkeypatch.setattr("nbkit.mcp.server.serve", lambda *given: served.append(given))
    assert MCP.run(Namespace(root=folder.root), said.append).text is None
    assert [given[0].root for given in served] == [folder.root]
    assert said == [f"serving the traces below {folder.root} on stdin and stdout; an assistant starts this by itself"]
