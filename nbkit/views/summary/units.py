"""Numbers for the eye: the only place that turns microseconds, bytes and counts into text."""

from math import isfinite

NULL = "—"
_DURATIONS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_FLOPS = ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"))


def is_null(value: object) -> bool:
    """Whether a cell's value is missing: None, NaN or pandas' NA."""
    # NaN differs from itself; comparing pandas' NA gives NA, which has no truth value.
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def duration(value_us: float | None) -> str:
    """Microseconds as '12.3 ms'; three significant digits from a microsecond on."""
    if value_us is None or is_null(value_us):
        return NULL
    size = abs(float(value_us))
    for factor, unit in _DURATIONS:
        # 999.6 ms would read '1000 ms', so a unit begins where rounding reaches it.
        if size >= factor * 0.9995:
            return f"{_three_digits(value_us / factor)} {unit}"
    return f"{value_us:.2f} µs" if size else "0 µs"


def change(value_us: float | None) -> str:
    """Microseconds with their sign: '+12.3 ms'."""
    text = duration(value_us)
    return f"+{text}" if value_us is not None and value_us > 0 else text.replace("-", "−")


def data_size(value_bytes: float | None) -> str:
    """Bytes as '12.3 MiB'."""
    return _in_units(value_bytes, _SIZES, "B")


def count(value: float | None) -> str:
    """A whole number with thousands separators: '12,345'."""
    return NULL if value is None or is_null(value) else f"{int(value):,}"


def counted(value: int, noun: str) -> str:
    """A number with its noun: '1 op', '12,345 ops'."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def flops(value: float | None) -> str:
    """Floating-point operations as '1.23 GFLOP'."""
    return _in_units(value, _FLOPS, "FLOP")


def share(value_fraction: float | None) -> str:
    """A fraction 0..1 as '12.3 %'."""
    return NULL if value_fraction is None or is_null(value_fraction) else f"{100 * value_fraction:.1f} %"


def statistic(value: float | None) -> str:
    """A tensor statistic with four significant digits; infinities by name."""
    if value is None or is_null(value):
        return NULL
    return f"{value:.4g}" if isfinite(value) else ("inf" if value > 0 else "-inf")


def _in_units(value: float | None, units: tuple[tuple[float, str], ...], smallest: str) -> str:
    if value is None or is_null(value):
        return NULL
    for factor, unit in units:
        if abs(value) >= factor * 0.9995:
            return f"{_three_digits(value / factor)} {unit}"
    return f"{int(value)} {smallest}"


def _three_digits(value: float) -> str:
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
