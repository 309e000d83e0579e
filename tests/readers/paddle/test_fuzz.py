"""Tests mutated programs of every form: no exception but TraceError, and frames that hold together."""

import json
import random

import pytest

from nbkit.errors import TraceError
from tests.readers.paddle import texts

FORMS = ("WHILE", "MODERN", "VERSION_2_0", "VERSION_2018", "PROTOBUF", "PIR", "PIR_2_6")
ROUNDS = 30
PIECES = [
    *(piece.encode() for piece in "{ } ( ) [ ] ' \" \\ < > = -> %0 -1 1e999 @EMPTY@ \\ud800 tensor<".split()),
    *(
        piece.encode()
        for piece in (", ", " = ", "\n", "\r\n", " : ", "(inputs={", "{ // block_idx:", "blocks {\n", "ops {\n")
    ),
    *(
        piece.encode()
        for piece in ('() = "a.b" ()', "dist_attr = {", "block[7]", "Var['", " : LOD_TENSOR.shape(", "idx: -3\n")
    ),
    b"9" * 30,
    b"\x00",
    b"\xff\xfe",
    b"\xc4\xe3",
]


def mutated(data, choose):
    data = bytearray(data)
    for _ in range(choose.randint(1, 6)):
        start = choose.randrange(len(data) + 1)
        end = min(len(data), start + choose.choice([0, 1, 3, 20, 200]))
        change = choose.random()
        if change < 0.3:
            del data[start:end]
        elif change < 0.7:
            data[start:start] = choose.choice(PIECES) * choose.choice([1, 1, 3])
        elif change < 0.8:
            del data[start:]
        elif change < 0.9:
            data[start:start] = data[end : end + 300]
        else:
            data[start:end] = choose.randbytes(end - start)
    return bytes(data)


@pytest.mark.parametrize("form", FORMS)
def test_mutated_programs(read, form):
    choose = random.Random(form)
    for _ in range(ROUNDS):
        try:
            trace = read(mutated(getattr(texts, form).encode(), choose))
        except TraceError:
            continue
        json.dumps(trace.meta, allow_nan=False)
        assert trace.edges["dst"].isin(trace.nodes["node_id"]).all()
        assert trace.edges["src"].dropna().isin(trace.nodes["node_id"]).all()
        for text in trace.nodes["attributes"].dropna():
            json.loads(text, parse_constant=pytest.fail)
