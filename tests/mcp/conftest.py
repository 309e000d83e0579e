"""A folder of traces, one of them with captured values, and traces outside of it."""

from pathlib import Path

import pytest

from nbkit.findings.finding import Finding, findings_frame
from nbkit.mcp.folder import Folder
from tests.support.diff_traces import faulty_trace
from tests.support.fakes import fake_trace, small_trace


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder around the root: `runs` is the root, `secret` lies beside it."""
    base = tmp_path_factory.mktemp("mcp")
    small_trace(name="secret").save(base / "secret")
    root = base / "runs"
    trace = small_trace(verb="opcheck", name="mine", checked_tensors=4)
    cut = Finding("nan", "error", "1 of 2 elements are NaN", "Look.", op_id=4, op="aten.mm.default", step=1)
    trace.frames["findings"] = findings_frame([Finding("casts", "hint", "8 casts", "Cast once.", op_id=1), cut])
    trace.save(root / "mine")
    small_trace(verb="optrace", name="other").save(root / "deep/other")
    fake_trace(3000).save(root / "large")
    faulty_trace().save(root / "faulty", values="captured")
    (root / "link").symlink_to(base / "secret")
    (root / "notes.txt").write_text("no trace")
    small_trace(name="half").save(root / "half")
    (root / "half/ops.parquet").unlink()
    (root / "half/ops.parquet").symlink_to(base / "secret/ops.parquet")
    return base


@pytest.fixture(scope="session")
def folder(places: Path) -> Folder:
    return Folder(places / "runs")
