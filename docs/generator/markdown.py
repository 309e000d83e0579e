"""Tables and texts of Markdown."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table; bars and line ends in cells are made harmless."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def code(text: str) -> str:
    """Writes `text` as code within a line."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def block(text: str, language: str) -> str:
    """Writes `text` as a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def page(*parts: str) -> str:
    """Returns the parts that are not empty, with an empty line between them and one line end at the last."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def listed(entries: list[tuple[str, str]], link: str = "") -> str:
    """Writes entries of a docstring as a list; names link to their headings on the page `link`, if given."""
    return "\n".join(
        f"- {', '.join(_name(name, link) for name in names.split(', '))}: {text}" for names, text in entries
    )


def _name(name: str, link: str) -> str:
    return f"[{code(name)}]({link}#{name.lower()})" if link else code(name)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
