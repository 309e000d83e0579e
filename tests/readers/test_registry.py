"""The kind of a file is told from its content, wherever in it that shows."""

import gzip
import json
import re

import pytest

from nbkit.readers.chrome.reader import read_chrome_trace
from nbkit.readers.oneflow.reader import read_oneflow_log
from nbkit.readers.paddle.reader import read_paddle_program
from nbkit.readers.registry import reader_of
from tests.support.graph_texts import ONEFLOW, PADDLE

# What mpirun --tag-output and torchrun write before each line.
PREFIXES = ("[1,0]<stdout>:", "[default0]:", "[rank0]: ")


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        (ONEFLOW, read_oneflow_log),
        ("loading the data\n" * 3_000 + ONEFLOW, read_oneflow_log),
        *((re.sub("^", prefix, ONEFLOW, flags=re.M), read_oneflow_log) for prefix in PREFIXES),
        (PADDLE, read_paddle_program),
        (f"\ufeff{PADDLE}".replace("\n", "\r\n"), read_paddle_program),
        (json.dumps({"traceEvents": [], "note": PADDLE}), read_chrome_trace),
        (json.dumps([{"ph": "M", "name": PADDLE}]), read_chrome_trace),
        (f" [ \n{json.dumps({'ph': 'M', 'name': PADDLE})}]", read_chrome_trace),
        (json.dumps([PADDLE]), read_chrome_trace),
        ("hello\n", read_chrome_trace),
        ("", read_chrome_trace),
    ],
)
def test_the_reader_is_that_of_the_content(tmp_path, text, reader):
    (tmp_path / "file").write_bytes(text.encode())
    (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
    assert reader_of(tmp_path / "file") is reader_of(tmp_path / "packed") is reader
