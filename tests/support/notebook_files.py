"""What a committed notebook may hold; as a program, the check of the pre-commit hook."""

import json
import sys
from pathlib import Path
from typing import Any

MOST_CODE_CELLS = 15


def code_cells(path: Path) -> list[dict[str, Any]]:
    """The code cells of a notebook file."""
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def faults(path: Path) -> list[str]:
    """What is wrong with the file at `path`: committed outputs, widget state, too many cells."""
    cells = code_cells(path)
    found = [f"{path.name}: code cell {i} holds outputs" for i, cell in enumerate(cells) if cell["outputs"]]
    found += [f"{path.name}: code cell {i} holds a count" for i, cell in enumerate(cells) if cell["execution_count"]]
    if "widgets" in json.loads(path.read_text())["metadata"]:
        found.append(f"{path.name}: holds widget state")
    if len(cells) > MOST_CODE_CELLS:
        found.append(f"{path.name}: has {len(cells)} code cells, at most {MOST_CODE_CELLS} are allowed")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(fault for name in sys.argv[1:] for fault in faults(Path(name))) or None)
