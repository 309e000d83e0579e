"""docs/guides/simulated_device.md runs as it stands, and lists every kind of fault as the package describes it."""

import re
from pathlib import Path

import nbkit
from nbkit.simulated.faults.kinds import KINDS

TEXT = (Path(__file__).parents[2] / "docs/guides/simulated_device.md").read_text()


def test_the_example_runs_and_its_fault_fires():
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    assert names["planted"].report()["status"].tolist() == ["changed"]
    assert not names["actual"].equal(names["expected"])


def test_every_kind_is_listed_with_its_meaning_and_size():
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \|([^|]*)\|$", TEXT.partition("## Kinds of faults")[2], flags=re.MULTILINE
    )
    assert {name: meaning for name, meaning, _ in rows} == nbkit.FAULT_KINDS
    for name, _, size in rows:
        assert bool(size.strip()) == (KINDS[name].size_meaning is not None)
        assert KINDS[name].default_size is None or f"{KINDS[name].default_size:g}" in size
