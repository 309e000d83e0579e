"""The same questions to Python's tables and to the report's JavaScript, which node runs."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

Message = dict[str, Any]
HELPER = Path(__file__).parents[3] / "widgets" / "test_helpers" / "answer.js"


def in_the_page(table: str, block: bytes, questions: Sequence[Any], folder: Path, **state: Any) -> list[Message]:
    """What the page answers, from the block of a trace and more `state`; skips where there is no node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    file = folder / "block"
    file.write_bytes(block)
    asked = json.dumps({"file": str(file), "table": table, "questions": questions, "state": state})
    command = [node, str(HELPER)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    answers: list[Message] = json.loads(done.stdout)
    return answers


def as_sent(answer: Message) -> Message:
    """An answer as it reaches a front end."""
    sent: Message = json.loads(json.dumps(answer))
    return sent
