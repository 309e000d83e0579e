"""recognise: the frames of graphs, with what their nodes and modules are and the parts they make filled in."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nbkit.analysis.structure.places import module_parts
from nbkit.schema import MODULES, NODES, nullable


def recognise(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """All of `frames`, with `nodes` filled in part_id, and `parts` made; the frames given stay as they are."""
    nodes = NODES.check(frames["nodes"])
    types = _types(frames.get("modules", MODULES.frame()))
    tree, part_of_node = module_parts(nodes, types)
    own = np.bincount(part_of_node[part_of_node >= 0], minlength=len(tree.parts)).tolist()
    filled = nodes.assign(part_id=nullable(part_of_node))
    return {**frames, "nodes": filled, "parts": tree.frame(own)}


def _types(modules: pd.DataFrame) -> dict[str, str]:
    """Class of each module path; of a path in several models that of the first."""
    first = MODULES.check(modules).drop_duplicates("module")
    return dict(zip(first["module"], first["type"], strict=True))
