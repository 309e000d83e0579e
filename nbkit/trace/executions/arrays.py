"""Turns what a user gives as tensors into numpy: of any library, or a file of arrays; writes such files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from nbkit.errors import OptionError


def as_array(value: Any) -> npt.NDArray[Any]:
    """Returns a tensor, array or number as numpy; bfloat16, which numpy has not, as float32."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) in ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2"):
            value = value.float()
        return np.asarray(value.numpy())
    return np.asarray(value)


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Returns the arrays of an .npz file by name; nothing in it is executed. Raises OptionError if it is none."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, AttributeError, EOFError, BadZipFile) as error:
        raise OptionError(f"{path} is no .npz file of arrays ({error}); write one with numpy.savez.") from error


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Writes a .npz file of arrays by name; numpy.savez has no room for one that is called `file`."""
    with ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
