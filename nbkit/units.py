"""Formats numbers: the only place that turns microseconds, bytes and counts into text."""

import re
from decimal import ROUND_HALF_UP, Context, Decimal

from nbkit.errors import OptionError

NULL = "—"
_BYTES = {"": 1, "b": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("kmgtp", 1)
    for unit, base in (("b", 1000), ("ib", 1024))
}
_DURATIONS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_FLOPS = ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"))


def fixed(value: float, digits: int) -> str:
    """Formats a number with so many decimals; ties round away from zero, as in the widgets: '6.3' for 6.25."""
    # A product of small whole numbers is exact, so that each tie comes here as an odd one.
    if value * 2 * 10**digits % 2 != 1:
        return f"{value:.{digits}f}"
    return str(Decimal(float(value)).quantize(Decimal((0, (1,), -digits)), ROUND_HALF_UP))


def general(value: float, digits: int) -> str:
    """Formats a number with so many significant digits; ties round away from zero, as in the widgets."""
    # A tie is exact with one digit more.
    if float(f"{value:.{digits}e}") == value:
        value = float(Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(float(value)))
    return f"{value:.{digits}g}"


def is_null(value: object) -> bool:
    """Tells whether a cell's value is missing: None, NaN or pandas' NA."""
    # NaN differs from itself; comparing pandas' NA gives NA, which has no truth value.
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def duration(value_us: float | None) -> str:
    """Formats microseconds as '12.3 ms'; three significant digits from a microsecond on."""
    if value_us is None or is_null(value_us):
        return NULL
    size = abs(float(value_us))
    for factor, unit in _DURATIONS:
        # 999.6 ms would read '1000 ms', so a unit begins where rounding reaches it.
        if size >= factor * 0.9995:
            return f"{_three_digits(value_us / factor)} {unit}"
    return f"{fixed(value_us, 2)} µs" if size else "0 µs"


def change(value_us: float | None) -> str:
    """Formats microseconds with their sign: '+12.3 ms'."""
    text = duration(value_us)
    return f"+{text}" if value_us is not None and value_us > 0 else text.replace("-", "−")


def data_size(value_bytes: float | None) -> str:
    """Formats bytes as '12.3 MiB'."""
    return _in_units(value_bytes, _SIZES, "B")


def bytes_of(size: object) -> int:
    """Returns a size in bytes: of a number, or of a text such as '24 GiB' (1024³ each) or '80GB' (1000³).

    Raises OptionError for anything else.
    """
    match = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(size)) if isinstance(size, str | int | float) else None
    )
    if match is None or isinstance(size, bool) or match[2].lower() not in _BYTES:
        raise OptionError(f"{size!r} is no size of memory; give bytes as a number, or such as '24 GiB' or '80 GB'.")
    return int(float(match[1]) * _BYTES[match[2].lower()])


def count(value: float | None) -> str:
    """Formats a whole number with thousands separators: '12,345'."""
    return NULL if value is None or is_null(value) else f"{int(value):,}"


def counted(value: int, noun: str) -> str:
    """Formats a number with its noun: '1 op', '12,345 ops'."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def and_more(rest: int) -> str:
    """Returns what stands behind some of many: ' and 12 more'; nothing where there are no more."""
    return f" and {rest:,} more" if rest > 0 else ""


def out_of(number: int, whole: int) -> str:
    """Returns 'all', 'none of 4' or '2 of 4'."""
    return "all" if number == whole else f"{count(number) if number else 'none'} of {count(whole)}"


def flops(value: float | None) -> str:
    """Formats floating-point operations as '1.23 GFLOP'."""
    return _in_units(value, _FLOPS, "FLOP")


def exact_size(value_bytes: int) -> str:
    """Formats bytes with two decimals, in the largest unit that they fill: '4.62 MiB', '0 B'."""
    for factor, unit in _SIZES:
        if abs(value_bytes) >= factor:
            return f"{value_bytes / factor:.2f} {unit}"
    return f"{value_bytes} B"


def exact_flops(value: float | None) -> str:
    """Formats FLOPs with two decimals, in the largest power of 1000 that they exceed: '924.84 M', '1000.00 M', '0'."""
    if value is None or is_null(value):
        return NULL
    for factor, unit in _FLOPS:
        if value > factor:
            return f"{value / factor:.2f} {unit.removesuffix('FLOP')}"
    return str(int(value))


def share(value_fraction: float | None) -> str:
    """Formats a fraction 0..1 as '12.3 %'."""
    return NULL if value_fraction is None or is_null(value_fraction) else f"{fixed(100 * value_fraction, 1)} %"


def statistic(value: float | None) -> str:
    """Formats a tensor statistic with four significant digits; infinities by name."""
    if value is None or is_null(value):
        return NULL
    return general(value, 4)


def _in_units(value: float | None, units: tuple[tuple[float, str], ...], smallest: str) -> str:
    if value is None or is_null(value):
        return NULL
    for factor, unit in units:
        if abs(value) >= factor * 0.9995:
            return f"{_three_digits(value / factor)} {unit}"
    return f"{int(value)} {smallest}"


def _three_digits(value: float) -> str:
    size = abs(value)
    return fixed(value, 0 if size >= 99.95 else 1 if size >= 9.995 else 2)
