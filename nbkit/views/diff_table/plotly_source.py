"""plotly.js out of the installed plotly, in parts: a front end asks for it once, when it draws its first plot.

In the widget's own bundle it would be sent with every widget (4.8 MB each); from a CDN it would not come offline.
Deflated it is 1.5 MB, which stays below what a Jupyter server lets through in one go (3 MB).
"""

import zlib
from functools import cache

from nbkit.errors import OptionError

PART_BYTES = 400_000


@cache
def plotly_parts() -> tuple[bytes, ...]:
    """The library, deflated (zlib), cut into parts."""
    from plotly.offline import get_plotlyjs

    packed = zlib.compress(get_plotlyjs().encode(), 6)
    return tuple(packed[start : start + PART_BYTES] for start in range(0, len(packed), PART_BYTES))


def plotly_part(number: int) -> bytes:
    """One part. Raises OptionError if there is none of this number."""
    parts = plotly_parts()
    if not 0 <= number < len(parts):
        raise OptionError(f"plotly.js has no part {number}; there are {len(parts)}.")
    return parts[number]
