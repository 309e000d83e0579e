"""Links of Markdown pages: what they point to, and whether it is there. No network."""

import re
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


def broken_links(page: Path) -> list[str]:
    """Relative links of the page to a file or a heading that is not there; links to other hosts are not followed."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [link for link in LINK.findall(text) if not _is_elsewhere(link) and not _is_there(page, link)]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: list[str] = []
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.append(f"{anchor}-{found.count(anchor)}" if anchor in found else anchor)
    return set(found)


def _is_elsewhere(link: str) -> bool:
    return link.startswith(("https://", "http://", "mailto:"))


def _is_there(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or (target.suffix == ".md" and anchor in anchors(target)))
