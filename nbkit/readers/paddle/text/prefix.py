"""Strips what a log puts before each line of a program, such as a rank, a time or `# `."""

import re

DIGITS = re.compile(r"\d+")
LONGEST = 200
# What Paddle's own log (glog) puts there: level and date, time, thread, file and line.
GLOG = re.compile(r"[IWEF]\d{4,8} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]{1,100}:\d+\] ?")


class Prefix:
    """Learns a prefix from the line that begins a program; digits in it may be others in other lines."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None

    def learn(self, text: str) -> None:
        """Learns the prefix from `text`, which stands before a program's first record in its line."""
        text = text.rstrip()
        if text and len(text) <= LONGEST:
            self._pattern = re.compile(r"\d+".join(map(re.escape, DIGITS.split(text))))
        else:
            self._pattern = None

    def strip(self, line: str) -> str:
        """Returns the line without the prefix; the line itself where it does not begin with it."""
        if match := GLOG.match(line):
            return line[match.end() :]
        if self._pattern and (match := self._pattern.match(line)):
            return line[match.end() :]
        return line
