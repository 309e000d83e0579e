"""`python -m nbkit graph`: the graph in a dump, an ONNX model or a saved trace; two of them compared."""

from collections.abc import Sequence

from nbkit.command_line.command import FINE, PROGRAM, Command
from nbkit.command_line.parser import CommandParser, bad_use
from nbkit.command_line.terminal import Narrator, show
from nbkit.load import load
from nbkit.trace.trace import Trace
from nbkit.verbs import opgraph
from nbkit.verbs.parser import absolute_path
from nbkit.views.report.opreport import opreport
from nbkit.views.summary import units

DESCRIPTION = f"""\
Show the graph in a OneFlow nn.Graph log, a Paddle program, an ONNX model or a saved trace, with its parts recognised:
modules, RWKV and LLaMA blocks, what repeats.

    {PROGRAM} graph rwkv.log                                what it is made of
    {PROGRAM} graph rwkv.log -o report.html                 the same as a page, with the graph to unfold
    {PROGRAM} graph rwkv.log --against rwkv.onnx            which parts, parameters and ops of both correspond
    {PROGRAM} graph rwkv.log --graph 'GraphBase_0 traced' --save traced

Exit status: 0; 2 if a file cannot be read or written."""


def _parser() -> CommandParser:
    parser = CommandParser("graph", DESCRIPTION)
    output = "write the HTML file FILE instead of text; one that is there is replaced"
    parser.add_argument("-o", "--output", type=absolute_path, metavar="FILE", help=output)
    parser.add_argument("--save", type=absolute_path, metavar="FOLDER", help="save the graph as a trace there")
    opgraph.add_options(parser, "PATH", "a file, or the folder of a saved trace")
    return parser


def _run(words: Sequence[str]) -> int:
    options, narrator = _parser().parse_words(words), Narrator()

    def find(path: str) -> Trace:
        narrator.progress(f"reading {path}")
        return load(path)

    with bad_use(GRAPH.name):
        trace = opgraph.graph(options, find)
        if options.save is not None:
            trace.save(options.save)
        if options.output is not None:
            narrator.progress(f"writing {options.output}")
            opreport(trace, path=options.output)
    if options.output is not None:
        show(f"{options.output}: {units.data_size(options.output.stat().st_size)}")
    elif options.save is None:
        show(trace.summary())
    return FINE


GRAPH = Command(
    "graph", "show the graph in a dump or a trace, or compare two", "graph rwkv.log --against rwkv.onnx", _run
)
