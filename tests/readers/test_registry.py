"""The kind of a file is told from its content, wherever in it that shows."""

import gzip
import json
import re

import pytest

from nbkit.readers.chrome.reader import CHROME
from nbkit.readers.oneflow.reader import ONEFLOW as ONEFLOW_READER
from nbkit.readers.paddle.reader import PADDLE as PADDLE_READER
from nbkit.readers.registry import KINDS, reader_of
from tests.support.graph_texts import ONEFLOW, PADDLE

# What mpirun --tag-output and torchrun write before each line.
PREFIXES = ("[1,0]<stdout>:", "[default0]:", "[rank0]: ")


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        (ONEFLOW, ONEFLOW_READER),
        ("loading the data\n" * 3_000 + ONEFLOW, ONEFLOW_READER),
        *((re.sub("^", prefix, ONEFLOW, flags=re.M), ONEFLOW_READER) for prefix in PREFIXES),
        (PADDLE, PADDLE_READER),
        (f"\ufeff{PADDLE}".replace("\n", "\r\n"), PADDLE_READER),
        (json.dumps({"traceEvents": [], "note": PADDLE}), CHROME),
        (json.dumps([{"ph": "M", "name": PADDLE}]), CHROME),
        (f" [ \n{json.dumps({'ph': 'M', 'name': PADDLE})}]", CHROME),
        (json.dumps([PADDLE]), CHROME),
        ("hello\n", None),
        ("", None),
    ],
)
def test_the_reader_is_that_of_the_content(tmp_path, text, reader):
    (tmp_path / "file").write_bytes(text.encode())
    (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
    assert reader_of(tmp_path / "file") is reader_of(tmp_path / "packed") is reader


def test_the_formats_are_listed_in_words():
    assert KINDS == (
        "a Chrome trace of torch.profiler, a dump of torch's flight recorder, a memory snapshot of torch.cuda, "
        "a OneFlow nn.Graph log, a Paddle program or an ONNX model"
    )
