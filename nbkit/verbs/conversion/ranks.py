"""Says which folder each file is converted to, and which files a task of srun converts."""

import os
from collections.abc import Mapping
from pathlib import Path

from nbkit.errors import TraceError
from nbkit.readers.chrome.rank_files import chrome_traces, ranks_of_files

SUFFIXES = (".gz", ".json", ".trace", ".pt")
# What srun tells each task: which one it is, and of how many.
TASK, TASKS = "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"


def default_folder(path: Path) -> Path:
    """Returns the folder beside a file or folder that its conversion is written to."""
    name = path.name
    for suffix in SUFFIXES if path.is_file() else ():
        name = name.removesuffix(suffix)
    return path.with_name(name if name and name != path.name else f"{path.name}-converted")


def rank_folders(path: Path, out: Path) -> dict[str, str]:
    """Returns the folder that each Chrome trace in a folder is converted to; raises TraceError if there is none."""
    if not path.exists():
        raise TraceError(f"There is no file or folder {path}; check the path.")
    files = chrome_traces(path)
    if not files:
        raise TraceError(f"{path} holds no Chrome trace (.json, .json.gz); give a file, or a folder with such files.")
    ranks = ranks_of_files(files) or dict(enumerate(files))
    return {str(file): str(out / f"rank={rank}") for rank, file in ranks.items()}


def own_share(folders: dict[str, str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns what this task of srun converts; all of it where there is only one."""
    task, tasks = environment.get(TASK, "0"), environment.get(TASKS, "1")
    if not (task.isdecimal() and tasks.isdecimal() and int(tasks) > 1):
        return folders
    return dict([*folders.items()][int(task) :: int(tasks)])
