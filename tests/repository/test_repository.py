"""Facts about the repository that a reader relies on."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import nbkit
from nbkit import __version__

ROOT = Path(__file__).parents[2]
# Spelled with brackets, so that this file does not name them itself.
FOREIGN = re.compile(
    r"/(?:tmp|work|farm|root|home)/|python[h]osted|pypi[.]org|registry[.]npmjs|deb[.]debian|(?<![\w-])farm-\w"
)
NOT_TEXT = {".png", ".parquet", ".bin"}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def tracked_files() -> list[Path]:
    """Files of the repository that git does not ignore; every file where this is no git checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip(f"this is no git checkout: {listed.stderr.strip()}")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def foreign_names(text: str) -> list[str]:
    return [match.group() for match in FOREIGN.finditer(text)]


def test_no_file_names_a_machine_path_or_a_registry_host():
    texts = {path: path.read_text() for path in tracked_files() if path.suffix not in NOT_TEXT}
    assert len(texts) > 20
    assert {str(path): found for path, text in texts.items() if (found := foreign_names(text))} == {}


def test_the_check_for_foreign_names_can_fail():
    assert foreign_names("a relative/path and https://example.org") == []
    assert len(foreign_names("see https://registry" + ".npmjs.org" + " and /" + "tmp/x")) == 2


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_documented_commands_exist(name):
    commands = re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / name).read_text(), re.MULTILINE)
    assert "test" in commands
    assert set(commands) <= TARGETS


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    (example,) = [block for block in python_blocks("README.md") if "nbkit." in block]
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    assert "slowest ops" in capsys.readouterr().out
    assert (tmp_path / "first_step/ops.parquet").is_file() and (tmp_path / "first_step.html").is_file()


def test_the_example_of_two_runs_compares_them(tmp_path, monkeypatch):
    (example,) = python_blocks("docs/sources/texts/opdiff.md")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(example, "opdiff.md", "exec"), names)
    assert names["result"].attrs["first_divergence"] is None and set(names["result"]["action"]) == {"match"}


def test_the_example_of_opcheck_finds_the_logarithm():
    (example,) = python_blocks("docs/sources/texts/opcheck.md")
    names: dict[str, object] = {}
    exec(compile(example, "opcheck.md", "exec"), names)
    trace = names["trace"]
    assert trace.findings["rule"].iloc[0] == "nan"
    assert "aten.addmm.default" in set(nbkit.producers(trace, trace.findings["op_id"][0])["op"])


def test_make_alone_lists_every_target():
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^ +make ([a-z-]+)", listed, re.MULTILINE)) == TARGETS


def test_the_changelog_names_this_version():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert __version__ in headings


@pytest.mark.parametrize("name", ["op_table", "flamegraph", "diff_table", "report"])
def test_a_screenshot_is_a_small_picture(name):
    picture = (ROOT / f"docs/images/{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 300_000


def test_the_ci_script_can_run():
    assert os.access(ROOT / ".ci/run", os.X_OK)
    subprocess.run(["bash", "-n", ".ci/run"], cwd=ROOT, check=True)
