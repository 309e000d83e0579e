"""Line ends, byte order marks and foreign bytes change nothing; prefixes of other tools are taken off."""

import gzip

import pytest

from nbkit.readers.oneflow.text.lines import Cleaner
from tests.readers.oneflow import logs

TEXT = logs.text(logs.records())


@pytest.fixture
def clean(tmp_path):
    return logs.read(tmp_path, TEXT)


@pytest.mark.parametrize(
    "data",
    [
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        TEXT.replace("\n", "\r\n").encode("utf-16"),
        gzip.compress(TEXT.encode()),
        TEXT.removesuffix("\n").encode(),
    ],
)
def test_same_frames(tmp_path, clean, data):
    trace = logs.read(tmp_path, data)
    assert logs.same(clean, trace) == {}
    assert (trace.complete, trace.meta["skipped_lines"]) == (True, [])


def test_foreign_bytes_are_counted(tmp_path, clean):
    trace = logs.read(tmp_path, "开始训练\n".encode("gbk") + TEXT.encode())
    assert logs.same(clean, trace, but=["line"]) == {}
    assert trace.meta["oneflow"]["undecodable_bytes"] == 4
    assert trace.meta["notes"][0] == "4 bytes could not be decoded; U+FFFD stands for them."


def numbered(line: str, number: int) -> str:
    return f"{number}\t{line}"


def of_a_rank(line: str, number: int) -> str:
    return f"[1,0]<stdout>:{line}"


def of_torchrun(line: str, number: int) -> str:
    return f"[default0]:{line}"


def timed(line: str, number: int) -> str:
    return f"2022-08-24T02:43:{number % 60:02d}.123Z {line}"


def logged(line: str, number: int) -> str:
    return f"2022-08-24 02:43:{number % 60:02d},123 - INFO - {line}"


def commented(line: str, number: int) -> str:
    return f"# {line}".rstrip()


def shifted(line: str, number: int) -> str:
    return f"      {line}"


def coloured(line: str, number: int) -> str:
    return f"\x1b[32m{line[:9]}\x1b[0m{line[9:]}"


def of_a_worker(line: str, number: int) -> str:
    return f"worker-{number % 3} ({number}) | {line}"


@pytest.mark.parametrize(
    "prefix", [numbered, of_a_rank, of_torchrun, timed, logged, commented, shifted, coloured, of_a_worker]
)
def test_prefixes(tmp_path, clean, prefix):
    lines = TEXT.split("\n")[:-1]
    trace = logs.read(tmp_path, "".join(f"{prefix(line, number)}\n" for number, line in enumerate(lines, 1)))
    assert logs.same(clean, trace) == {}
    assert (trace.complete, trace.meta["skipped_lines"]) == (True, [])


def test_lost_bracket_of_a_pasted_head(tmp_path, clean):
    assert logs.same(clean, logs.read(tmp_path, TEXT.replace("(GRAPH:Net_0:Net): (", "GRAPH:Net_0:Net): ("))) == {}


def test_ranks_of_prefixes():
    cleaner = Cleaner()
    assert cleaner.clean("[1,3]<stderr>:  (MODULE:a:A())") == ("3", "(MODULE:a:A())")
    assert cleaner.clean("[rank2]: x") == ("2", "x")
    assert cleaner.clean("[08/24 02:43:17 libai]: x") == (None, "[08/24 02:43:17 libai]: x")
    assert cleaner.clean("2022-08-24 02:43:17 [INFO] # y") == (None, "y")


def test_text_of_a_mistaken_encoding_is_counted_and_mended(tmp_path, clean):
    whole = "你好 of line 1"
    mistaken = whole.encode().decode("cp1252")
    trace = logs.read(tmp_path, f"{mistaken}\n{TEXT}")
    assert logs.same(clean, trace, but=["line"]) == {}
    assert trace.meta["oneflow"]["mojibake"] == {
        "count": 1,
        "repaired": 1,
        "characters": 6,
        "lines": [{"line": 1, "text": mistaken, "repaired": whole}],
    }
    assert trace.meta["notes"] == [
        "1 lines hold text of a mistaken encoding, kept as it is; "
        "1 of them could be repaired in meta['oneflow']['mojibake']."
    ]
