"""Checks the opcodes of a pickle before it is loaded: they may make plain data and nothing else."""

import pickletools
import re
from mmap import mmap

# Those of plain data, by the bytes of their argument. The others import, call, or ask for what is outside the file.
PLAIN = {
    0: b"\x94]})(aeust0N\x88\x89\x85\x86\x87.2",
    1: b"KhqC\x8c\x8a\x80U",
    2: b"M",
    4: b"JjXBT\x8b",
    8: b"G\x95\x8d\x8e",
}
# Those whose argument is the length of what follows, by the bytes of that length.
COUNTED = {0x8C: 1, 0x8A: 1, 0x43: 1, 0x55: 1, 0x58: 4, 0x42: 4, 0x54: 4, 0x8B: 4, 0x8D: 8, 0x8E: 8}
PROTO, STOP, LONG_BINPUT = 0x80, 0x2E, 0x72
NAMES = {ord(one.code): one.name for one in pickletools.opcodes}
# The lengths of integers from the most frequent on: addresses, times, sizes.
_INTEGERS = b"|".join(b"%c%s" % (size, b"." * size) for size in (6, 7, 8, 5, 9, 4, 3, 2, 1, 0)).replace(b"\n", b"\\n")


class RefusedPickleError(Exception):
    """A pickle does more than make plain data, is cut off, or is no pickle; the text says so, without the path."""


def check_opcodes(data: mmap | bytes) -> None:
    """Raises RefusedPickleError unless `data` begins with a pickle of protocol 2 to 5 that only makes plain data.

    Loaded, it takes memory in proportion to its length: a number that it gives to an object is below that length, as
    the table of these numbers is as long as the largest.
    """
    if len(data) < 2 or data[0] != PROTO or not 2 <= data[1] <= 5:
        raise RefusedPickleError("it does not begin as a pickle of protocol 2 to 5")
    pattern, position, whole = _plain_run(len(data)), 0, len(data)
    while position < whole:
        # A regular expression steps over most opcodes: a loop here would take ten times as long.
        while run := pattern.match(data, position):
            position = run.end()
        if position >= whole:
            break
        opcode = data[position]
        if opcode == STOP:
            return
        position = _after(data, position, opcode)
    raise RefusedPickleError("it is cut off")


def _after(data: mmap | bytes, position: int, opcode: int) -> int:
    """Returns where the next opcode stands."""
    if opcode in COUNTED:
        start = position + 1 + COUNTED[opcode]
        return start + int.from_bytes(data[position + 1 : start], "little")
    for size, opcodes in PLAIN.items():
        if opcode in opcodes:
            return position + 1 + size
    if opcode == LONG_BINPUT:
        raise RefusedPickleError("it numbers an object beyond its own length")
    name = NAMES.get(opcode)
    if name is None:
        raise RefusedPickleError(f"it is damaged at byte {position:,}")
    raise RefusedPickleError(f"it holds {name} at byte {position:,}, which is no plain data and could run code")


def _plain_run(length: int) -> re.Pattern[bytes]:
    """Returns what matches many opcodes of plain data at once, in a pickle of that many bytes."""
    # The numbers of objects that LONG_BINPUT gives, in four bytes, the last of which is the highest.
    high = [(length >> shift) & 0xFF for shift in (24, 16)] if length < 1 << 32 else [0xFF, 0xFF]
    number = b"..[%s]\\x00" % _up_to(high[1]) if not high[0] else b"...[%s]" % _up_to(high[0])
    alternatives = [
        b"j...." * 8,  # the frames of a stack are objects that were there before
        b"j....",
        b"(?:h.){1,8}+",
        b"[\\x94\\]})(aeustN0\\x88\\x89\\x85\\x86\\x87]++",
        b"\\x8a(?:%s)" % _INTEGERS,
        b"J....",
        b"M..",
        b"[Kq].",
        b"r" + number,
        b"[G\\x95]........",
    ]
    # Bounded, as each turn of a group takes memory.
    return re.compile(b"(?:%s){1,4000}+" % b"|".join(alternatives), re.DOTALL)


def _up_to(byte: int) -> bytes:
    return b"\\x00-\\x%02x" % byte
