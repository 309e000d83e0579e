"""Runs a step on two processes that talk through gloo, and brings back what each of them found."""

import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.processes import PYTHON

RANK = """
import pickle, sys
from importlib import import_module
import torch
import torch.distributed as dist
rank, store, module, name, answer = int(sys.argv[1]), *sys.argv[2:]
torch.set_num_threads(1)
dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2)
found = getattr(import_module(module), name)()
dist.barrier()
dist.destroy_process_group()
with open(answer, "wb") as file:
    pickle.dump(found, file)
"""


def on_two_ranks(function: Callable[[], Any], folder: Path) -> list[Any]:
    """Returns what a function of a test file returns on each of two ranks."""
    answers = [folder / f"answer {rank}" for rank in range(2)]
    words = [str(folder / "store"), function.__module__, function.__name__]
    ranks = [
        subprocess.Popen([*PYTHON, "-c", RANK, str(rank), *words, str(answer)], stderr=subprocess.PIPE, text=True)
        for rank, answer in enumerate(answers)
    ]
    errors = [rank.communicate(timeout=200)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(errors)
    return [pickle.loads(answer.read_bytes()) for answer in answers]
