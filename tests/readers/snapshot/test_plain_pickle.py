"""Only plain data are read from a pickle, whatever else it holds, and in memory that its size bounds."""

import gzip
import io
import os
import pickle
import pickletools
import random
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import nbkit
from nbkit.errors import TraceError
from nbkit.readers.snapshot.opcodes import COUNTED, PLAIN, RefusedPickleError, check_opcodes
from nbkit.readers.snapshot.plain_pickle import PlainUnpickler, load_plain

DATA = {
    "texts": ["", "a", "ä" * 300, "x" * 70_000], "bytes": [b"", b"b" * 300],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1,) * 9],
    "numbers": [0, 1, 255, 256, 65_535, 65_536, -1, 2**31, 2**63, -(2**70), 2**2_100, 1.5, float("inf")],
    "none": [None, True, False], "nested": [[{1: [2]}]], "many": [[number, str(number)] for number in range(3_000)],
}  # fmt: skip


class Runs:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_come_back_of_each_protocol(dumped, protocol):
    # Bytes have no opcode in protocol 2: a function makes them.
    data = {name: value for name, value in DATA.items() if protocol > 2 or name != "bytes"}
    path = dumped(data, protocol)
    assert load_plain(path) == data
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert load_plain(path) == data


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_no_code_of_a_pickle_runs(dumped, tmp_path, protocol):
    path = dumped({"segments": [], "device_traces": [Runs(tmp_path / "ran")]}, protocol)
    with pytest.raises(
        TraceError, match=r"snapshot\.pickle cannot be read: it holds \w+ at byte \d+, which is no plain"
    ):
        nbkit.load(path)
    assert not (tmp_path / "ran").exists()


def test_the_unpickler_itself_refuses_names_too(tmp_path):
    with pytest.raises(RefusedPickleError, match=r"posix\.system|nt\.system"):
        PlainUnpickler(io.BytesIO(pickle.dumps(Runs(tmp_path / "ran")))).load()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("value", [OrderedDict(a=1), {1, 2}, frozenset([1]), 1j, bytearray(b"a"), TraceError("a")])
def test_other_classes_are_refused(dumped, value):
    with pytest.raises(TraceError, match="which is no plain data and could run code"):
        load_plain(dumped([value], 5))


def test_every_opcode_that_torch_needs_is_known_with_the_length_of_its_argument():
    by_code = {ord(one.code): one for one in pickletools.opcodes}
    for size, opcodes in PLAIN.items():
        for opcode in set(opcodes) - set(COUNTED):
            argument = by_code[opcode].arg
            assert (0 if argument is None else argument.n) == size, by_code[opcode].name
    for opcode, size in COUNTED.items():
        argument = by_code[opcode].arg
        assert argument is not None
        expected = {pickletools.TAKEN_FROM_ARGUMENT1: 1, pickletools.TAKEN_FROM_ARGUMENT4: 4,
                    pickletools.TAKEN_FROM_ARGUMENT4U: 4, pickletools.TAKEN_FROM_ARGUMENT8U: 8}  # fmt: skip
        assert expected[argument.n] == size


REFUSED = """GLOBAL STACK_GLOBAL REDUCE BUILD INST OBJ NEWOBJ NEWOBJ_EX PERSID BINPERSID EXT1 EXT2 EXT4 NEXT_BUFFER
    READONLY_BUFFER BYTEARRAY8 EMPTY_SET FROZENSET ADDITEMS""".split()


@pytest.mark.parametrize(
    "opcode", [one for one in pickletools.opcodes if one.name in REFUSED], ids=lambda one: one.name
)
def test_opcodes_that_make_more_than_plain_data_are_refused(opcode):
    with pytest.raises(RefusedPickleError, match=f"holds {opcode.name} at byte 3"):
        check_opcodes(b"\x80\x04N" + opcode.code.encode("latin-1") + b"a\nb\n" + b"." * 9)


def test_a_number_of_an_object_beyond_the_file_is_refused():
    # The table of these numbers would take 64 GB.
    with pytest.raises(RefusedPickleError, match="numbers an object beyond its own length"):
        check_opcodes(b"\x80\x04]r" + struct.pack("<I", 0xFFFF_FFFF) + b".")
    check_opcodes(b"\x80\x04]r" + struct.pack("<I", 12) + b".")


@pytest.mark.parametrize("length", [0, 1, 2, 3, 40, -1])
def test_a_file_that_is_cut_off_is_told(dumped, length):
    path = dumped(DATA)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(TraceError, match="is cut off|is empty|does not begin as a pickle"):
        load_plain(path)


def test_gzip_data_that_end_or_grow_too_far_are_told(dumped, monkeypatch):
    path = dumped(DATA)
    path.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(TraceError, match="is cut off"):
        load_plain(path)
    monkeypatch.setattr("nbkit.readers.snapshot.plain_pickle.PIECE_BYTES", 1 << 10)
    path.write_bytes(gzip.compress(b"\x80\x04" + bytes(5 << 20), 9))
    with pytest.raises(TraceError, match="hold more than 400 times their size"):
        load_plain(path)


def test_damage_anywhere_ends_in_one_sentence(dumped):
    path = dumped({"segments": [], "device_traces": [], "more": DATA["nested"] + DATA["tuples"] + DATA["numbers"]})
    whole, draw = path.read_bytes(), random.Random(0)
    for _ in range(400):
        position = draw.randrange(len(whole))
        path.write_bytes(whole[:position] + bytes([draw.randrange(256)]) + whole[position + 1 :])
        try:
            nbkit.load(path)
        except TraceError as error:
            assert "\n" not in str(error)


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path):
    for path, reason in ((tmp_path, "is a directory"), (tmp_path / "absent", "no such file or directory")):
        with pytest.raises(TraceError) as error:
            load_plain(path)
        assert str(error.value) == f"Cannot read {path}: {reason}; give a file that you may read."


def test_what_is_outside_the_file_is_refused():
    class Outside(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            return "elsewhere" if value == 3 else None

    Outside(file := io.BytesIO()).dump([1, 3])
    file.seek(0)
    with pytest.raises(RefusedPickleError, match="it refers to what is outside the file"):
        PlainUnpickler(file).load()


def test_damaged_gzip_data_are_told(dumped):
    path = dumped([1, 2])
    path.write_bytes(gzip.compress(path.read_bytes())[:10] + bytes([255] * 40))
    with pytest.raises(TraceError, match="has damaged gzip data .*; copy it again"):
        load_plain(path)
