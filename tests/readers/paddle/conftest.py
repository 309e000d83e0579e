"""Reads the LLaMA pipeline program once, where its file is beside the repository."""

from pathlib import Path

import pytest

from nbkit.readers.paddle import read_paddle_program

PROGRAM = Path(__file__).parents[4] / "shared" / "data" / "paddle_llama_pipeline_program.txt"


@pytest.fixture(scope="session")
def program_path():
    if not PROGRAM.exists():
        pytest.skip("the Paddle sample program is not beside the repository (../shared/data)")
    return PROGRAM


@pytest.fixture(scope="session")
def program(program_path):
    return read_paddle_program(program_path)


@pytest.fixture
def read(tmp_path):
    """Reads a program from its text or bytes."""

    def read(content):
        path = tmp_path / "program.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_paddle_program(path)

    return read
