"""The magics of nbkit, made from the verbs, and how they enter and leave an IPython shell."""

from functools import cache

from IPython.core.interactiveshell import InteractiveShell

from nbkit.magics import completion, marker
from nbkit.magics.arguments import LineParser
from nbkit.magics.cell_magic import CellMagic
from nbkit.magics.direct import magic_function
from nbkit.magics.line_magic import line_function, line_parser
from nbkit.magics.transform import LineStep, SingleLineStep, TreeStep
from nbkit.verbs.registry import RECORDERS, VERBS
from nbkit.verbs.verb import LineMagic
from nbkit.views.host.outputs import forget_cells

CELL_MAGICS: dict[str, CellMagic] = {name: CellMagic(name, recorder) for name, recorder in RECORDERS.items()}
LINE_MAGICS: dict[str, LineMagic] = {verb.name: verb.line for verb in VERBS.values() if verb.line is not None}


def load(shell: InteractiveShell) -> None:
    """Give `shell` the magics; once, however often it is called."""
    unload(shell)
    marker.install(marker.Marker(shell, CELL_MAGICS))
    shell.input_transformers_cleanup.append(LineStep(CELL_MAGICS))
    shell.input_transformers_post.append(SingleLineStep(shell))
    shell.ast_transformers.append(TreeStep(shell, CELL_MAGICS))
    for magic in CELL_MAGICS.values():
        shell.magics_manager.register_function(magic_function(shell, magic), "cell", magic.name)
    for name, line_magic in LINE_MAGICS.items():
        shell.magics_manager.register_function(line_function(shell, name, line_magic), "line", name)
    completion.install(shell, _parser_of)


@cache
def _parser_of(magic: str) -> LineParser | None:
    """Returns the parser behind `%%optime` or `%opreport`; None for other magics."""
    if magic.startswith("%%"):
        return CELL_MAGICS[magic[2:]].parser if magic[2:] in CELL_MAGICS else None
    return line_parser(magic[1:], LINE_MAGICS[magic[1:]]) if magic[1:] in LINE_MAGICS else None


def unload(shell: InteractiveShell) -> None:
    """Take everything out of `shell` that load() put in; traces the user has stay."""
    for steps in (shell.input_transformers_cleanup, shell.input_transformers_post, shell.ast_transformers):
        steps[:] = [step for step in steps if not isinstance(step, LineStep | SingleLineStep | TreeStep)]
    for kind, name in [*(("cell", name) for name in CELL_MAGICS), *(("line", name) for name in LINE_MAGICS)]:
        shell.magics_manager.magics[kind].pop(name, None)
        vars(shell.magics_manager.user_magics).pop(name, None)
    completion.remove(shell)
    forget_cells(shell.events)
    marker.remove()
