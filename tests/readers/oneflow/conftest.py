"""Reads the real log once: a LiBai run of RWKV-4 under OneFlow with graph.debug = 2; it is not in the repository."""

from pathlib import Path

import pytest

from nbkit.readers.oneflow.reader import read_oneflow_log
from nbkit.trace.trace import Trace

SAMPLE = Path(__file__).parents[4] / "shared" / "data" / "oneflow_rwkv_graph_debug.log"


@pytest.fixture(scope="session")
def sample_path() -> Path:
    if not SAMPLE.is_file():
        pytest.skip("the OneFlow sample log is not beside the repository (../shared/data)")
    return SAMPLE


@pytest.fixture(scope="session")
def sample(sample_path: Path) -> Trace:
    return read_oneflow_log(sample_path)
