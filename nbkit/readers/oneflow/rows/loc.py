"""Source lines in the locations that OneFlow gives an op."""

import re

# The forms in order of version; in the last one the innermost frame comes first.
FRAME = re.compile(r"file '([^']+)', line (\d+)")
PLACE = re.compile(r" at '([^']+)': line (\d+)")
FILE = re.compile(r'File "([^"]+)", line (\d+)')


def source_of(loc: str | None) -> str | None:
    """'path/file.py:12' of the innermost frame; None if the location names none."""
    if not loc:
        return None
    if found := FILE.search(loc):
        return f"{found[1]}:{found[2]}"
    places = PLACE.findall(loc) or FRAME.findall(loc)
    return f"{places[-1][0]}:{places[-1][1]}" if places else None
