"""The cells of README.md's path in a notebook, with the versions that are installed: the NaN is found in its cell."""

import tempfile

from tests.docs.readme import cells
from tests.support.executed import notebook_of, run

# What the cell with the findings shows, whatever pandas and IPython print around it.
SHOWN = ("aten.div.Tensor", "Cell In[1], line 7", "64 of 2,048 elements are NaN")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        notebook = run(notebook_of(cells()), folder, store_widget_state=False)
    (findings,) = [cell for cell in notebook.cells if "doctor.findings" in cell.source]
    text = "".join(output.get("text", "") for output in findings.outputs)
    assert all(part in text for part in SHOWN), text
    print(f"  README.md: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main()
