"""The same questions to Python's tables and to the report's JavaScript, which node runs."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

Message = dict[str, Any]
HELPERS = Path(__file__).parents[3] / "widgets" / "test_helpers"


def in_the_page(table: str, block: bytes, questions: Sequence[Any], folder: Path, **state: Any) -> list[Message]:
    """What the page answers, from the block of a trace and more `state`; skips where there is no node."""
    file = folder / "block"
    file.write_bytes(block)
    answers: list[Message] = by_node(
        "answer.js", {"file": str(file), "table": table, "questions": questions, "state": state}
    )
    return answers


def by_node(helper: str, asked: Any) -> Any:
    """What a helper of the front end's tests makes of JSON data."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    command = [node, str(HELPERS / helper)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def as_sent(answer: Message) -> Message:
    """An answer as it reaches a front end."""
    sent: Message = json.loads(json.dumps(answer))
    return sent
