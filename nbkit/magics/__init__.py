"""The magics of nbkit, and how they enter and leave an IPython shell."""

from IPython.core.interactiveshell import InteractiveShell

from nbkit.magics import marker
from nbkit.magics.cell_magic import CellMagic
from nbkit.magics.direct import magic_function
from nbkit.magics.line_magic import LineMagic, line_function
from nbkit.magics.opcheck import OPCHECK
from nbkit.magics.opdiff import OPDIFF
from nbkit.magics.opgraph import OPGRAPH
from nbkit.magics.opreport import OPREPORT
from nbkit.magics.optime import OPTIME
from nbkit.magics.optrace import OPTRACE
from nbkit.magics.transform import LineStep, SingleLineStep, TreeStep

# A new verb joins by its own file and one entry here.
CELL_MAGICS: dict[str, CellMagic] = {magic.name: magic for magic in (OPTRACE, OPTIME, OPDIFF, OPCHECK)}
LINE_MAGICS: dict[str, LineMagic] = {magic.name: magic for magic in (OPREPORT, OPGRAPH)}


def load(shell: InteractiveShell) -> None:
    """Give `shell` the magics; once, however often it is called."""
    unload(shell)
    marker.install(marker.Marker(shell, CELL_MAGICS))
    shell.input_transformers_cleanup.append(LineStep(CELL_MAGICS))
    shell.input_transformers_post.append(SingleLineStep(shell))
    shell.ast_transformers.append(TreeStep(shell, CELL_MAGICS))
    for magic in CELL_MAGICS.values():
        shell.magics_manager.register_function(magic_function(shell, magic), "cell", magic.name)
    for line_magic in LINE_MAGICS.values():
        shell.magics_manager.register_function(line_function(shell, line_magic), "line", line_magic.name)


def unload(shell: InteractiveShell) -> None:
    """Take everything out of `shell` that load() put in; traces the user has stay."""
    for steps in (shell.input_transformers_cleanup, shell.input_transformers_post, shell.ast_transformers):
        steps[:] = [step for step in steps if not isinstance(step, LineStep | SingleLineStep | TreeStep)]
    for kind, name in [*(("cell", name) for name in CELL_MAGICS), *(("line", name) for name in LINE_MAGICS)]:
        shell.magics_manager.magics[kind].pop(name, None)
        vars(shell.magics_manager.user_magics).pop(name, None)
    marker.remove()
