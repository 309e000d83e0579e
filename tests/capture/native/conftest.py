"""The native recorder, built once if it is not there; where it cannot be built these tests skip with the reason."""

import os

import pytest

from nbkit import RecorderError
from nbkit.capture.native.build import build_recorder


@pytest.fixture(autouse=True, scope="session")
def built_recorder():
    """The library's path. In CI a machine that cannot build it is a failure."""
    try:
        return build_recorder()
    except RecorderError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def default_recorder(monkeypatch):
    monkeypatch.delenv("NBKIT_RECORDER", raising=False)
