"""Tests logs that were mangled by chance, and lines of 30 kB: no exception, and no time without bound."""

import random
from time import process_time

import pytest

from nbkit.errors import TraceError
from tests.readers.oneflow import logs
from tests.readers.oneflow.frames import edges_of

TEXT = logs.text(logs.records()).encode()
PARTS = [b"(", b")", b"): (", b'"', b"{", b"}", b"\n", b"\n\n", b"\x00", b"\xff\xfe", b"[", b"9" * 400, b"\\"]
PARTS += [b"(OPERATOR: ", b"(MODULE:a:A()): (", b"size=(-1,", b"I20220824 02:43:01.000001 7 a.cpp:1] "]
PARTS += [b"Lazy nn.Graph name Net_0 try to add op: \n"]


def mutated(source: random.Random) -> bytes:
    """Returns the log with some of it cut out, doubled, moved or overwritten."""
    data = bytearray(TEXT)
    for _ in range(source.randint(1, 12)):
        start = source.randrange(len(data))
        end = min(len(data), start + int(source.expovariate(1 / 200)))
        kind = source.randrange(4)
        if kind == 0:
            del data[start:end]
        elif kind == 1:
            data[start:start] = data[start:end]
        elif kind == 2:
            data[start:start] = source.choice(PARTS)
        else:
            data[start : start + 1] = bytes([source.randrange(256)])
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_mangled_logs(tmp_path, seed):
    source = random.Random(seed)
    for _ in range(20):
        data = mutated(source)
        try:
            trace = logs.read(tmp_path, data)
        except TraceError:
            pytest.fail(f"the file can be read: {data!r}")
        for graph in trace.nodes["graph"].unique():
            assert edges_of(trace, graph)["src"].dropna().isin(trace.nodes["node_id"]).all()
        assert trace.graph_tensors["numel"].dropna().ge(0).all()


LONG = 30_000
LINES = [
    "a" * LONG,
    "(OPERATOR: " + "a, " * (LONG // 3),
    "(OPERATOR: a(" + "x:(sbp=(B), size=(" * (LONG // 18) + ") -> ()",
    "(OPERATOR: a([" + "[" * LONG + ") -> ())",
    "(MODULE:a:" + "A(" * (LONG // 2),
    "(INPUT:" + "(" * LONG,
    "[08/24 02:43:44 a]: iteration: 1 " + "a" * LONG,
    "[08/24 02:43:44 a]: iteration: 1 " + "a: " * (LONG // 3),
    "I20220824 02:43:01.000001 7 " + "a." * (LONG // 2),
    "I20220824 02:43:01.000001" + " " * LONG + "7",
    "I20220824 02:43:01.000001 7 a.cpp:1] " + "[ 1 MiB" * (LONG // 7),
    "I20220824 02:43:01.000001 7 a.cpp:1] " + "x" * LONG + " compiling with pass ",
    "#" * LONG,
    "# " * (LONG // 2),
    "1:" * (LONG // 2),
    "\x1b[" * (LONG // 2),
    "(GRAPH:a:A) " + "x" * LONG + " Done! Cost time: " + "1" * LONG,
    "I20220824 02:43:01.000001 7 a.cpp:1] " + "[" * LONG + " MiB",
    "Lazy nn.Graph name G try to add op: " * 900,
    "I20220824 02:43:01.000001 7 a.cpp:1] WhiteSet include: " * 600,
    'loc: "' + "at '" * (LONG // 4) + '"',
    "é" * LONG,
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:24])
def test_long_lines_take_no_time(tmp_path, line):
    head = "\n".join(logs.traced()[0][:4])
    start = process_time()
    logs.read(tmp_path, f"{line}\n{head}\n{line}\n\n{line}")
    assert process_time() - start < 1.0
