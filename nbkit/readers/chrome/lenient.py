"""Mends a value that is no JSON but can only mean one thing: bare quotes and backslashes, inf, nan, None, commas.

torch writes names of Python frames, which hold paths and sources, without escaping what JSON would have escaped.
"""

import json
import re
from itertools import islice

# Where a value may end: an object before the next one or the end of its list, a text before the next field.
ENDS = {"{": re.compile(r'\}(?=[\s,]*+(?:\{\s*+"|\]|\Z))'), '"': re.compile(r'"(?=\s*+(?:,\s*+"|\}))')}
MOST_ENDS, MOST_CHARACTERS = 8, 1 << 16
KEYS = "ph|cat|name|pid|tid|ts|dur|args|id|bp|s|sf|stack|tts|tdur|tidx|cname|scope|v|bind_id|flow_in|flow_out"
BEHIND_NAME = rf'\s*+(?:,\s*+"(?:{KEYS})"\s*+:|\}}\s*+(?:[,\]}}]|\Z))'
BEHIND_TEXT = r'\s*+(?:,\s*+"[^"\\\n]{1,80}+"\s*+:|\}\s*+(?:[,\]}]|\Z))'
NAME, FIELD = (
    re.compile(rf'(?<!\\)("{name}"\s*+:\s*+)"((?:[^"\\]|\\.|"(?!{behind}))*+)"(?={behind})', re.DOTALL)
    for name, behind in (("name", BEHIND_NAME), (r'[^"\\\n]{1,80}+', BEHIND_TEXT))
)
# Of two texts with a comma between them the second is a field whose colon is missing.
TWO_TEXTS = re.compile(r'"\s*+,\s*+"')
TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*+"|,(?:\s*+,)++|(?<![\w.])(?:-?(?:inf(?:inity)?|nan(?:\(ind\))?)|None)(?![\w.])', re.I
)
LAST_FIELD = re.compile(r'"([^"\\\n]{1,80}+)"\s*+:')


def meant(text: str, at: int, decoder: json.JSONDecoder) -> tuple[object, int] | None:
    """Returns the value at `at`, mended, and where it ends; None if no mending makes it JSON."""
    if (ends := ENDS.get(text[at : at + 1])) is None:
        return None
    for end in islice(ends.finditer(text, at + 1, at + MOST_CHARACTERS), MOST_ENDS):
        piece = _mended(text[at : end.end()])
        try:
            value, length = decoder.raw_decode(piece)
        except (ValueError, RecursionError):
            continue
        if length == len(piece):
            return value, end.end()
    return None


def may_go_on(text: str, at: int) -> bool:
    """Returns whether more text could show where the value at `at` ends."""
    ends = ENDS.get(text[at : at + 1])
    found = 0 if ends is None else sum(1 for _ in islice(ends.finditer(text, at + 1), MOST_ENDS))
    return ends is not None and len(text) - at < MOST_CHARACTERS and found < 2


def field_at(text: str, start: int, position: int) -> str:
    """Returns the name of the field that `position`, in the value that begins at `start`, is in; "" for none."""
    return next(iter(LAST_FIELD.findall(text, start, position)[-1:]), "")


def _mended(text: str) -> str:
    text = NAME.sub(lambda match: match[1] + _quoted(match[2]), text, count=1)
    text = FIELD.sub(lambda match: match[0] if TWO_TEXTS.search(match[2]) else match[1] + _quoted(match[2]), text)
    return TOKEN.sub(_token, text)


def _quoted(raw: str) -> str:
    """Returns a text as JSON; all its backslashes are meant where one of them begins no escape of JSON."""
    escaped = '"' + re.sub(r'((?:\\.)*+)"', r"\1\\" + '"', raw) + '"'
    try:
        json.loads(escaped, strict=False)
    except ValueError:
        return json.dumps(raw)
    return escaped


def _token(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == ",":
        return ","
    if token[0] == '"':
        return token
    if token == "None":
        return "null"
    return "NaN" if "nan" in token.lower() else f"{'-' * (token[0] == '-')}Infinity"
