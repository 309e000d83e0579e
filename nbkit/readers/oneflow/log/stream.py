"""Reads the lines of one rank: what each one is, and the record of several lines that is being read."""

from collections.abc import Callable

from nbkit.readers.oneflow.log.log import Log
from nbkit.readers.oneflow.log.tree_lines import TreeLines, tree_word
from nbkit.readers.oneflow.text.facts import JOB_VARIABLE, moment
from nbkit.readers.oneflow.text.lines import Glog, glog
from nbkit.readers.oneflow.text.multiline_records import LAZY, AddBody, Body, ProtoBody, SetBody, TracebackBody
from nbkit.readers.oneflow.text.traced import described, traced_op
from nbkit.readers.text_proto import Message

LEVELS = ("[ERROR", "[WARNING", "[INFO")
SETS = ("WhiteSet", "BlackSet", "GrayList", "ClearList")
CRASHES = (
    "Main process received ",
    "terminate called",
    "Segmentation fault",
    "Aborted",
    "Error Type: ",
    "[ERROR]",
)
HEADER = " with operators:"
TRACEBACK = "Traceback (most recent call last)"


class Stream:
    """Takes the lines of one rank in turn, cleaned; what they say goes into the log."""

    def __init__(self, log: Log, rank: str | None) -> None:
        # Takes a line that is a field of the message that is being read; None while none is.
        self.field: Callable[[str], bool] | None = None
        self._log, self._rank = log, rank
        self._tree = TreeLines(log.graphs, rank, log.operators, log.skipped)
        self._body: Body | None = None
        self._thread: str | None = None
        self._header = -1
        self._begun = (0, "")

    @property
    def is_listing(self) -> bool:
        """Returns whether a listing was begun and has not ended."""
        return self._tree.is_open

    def take(self, number: int, line: str) -> bool:
        """Takes a line; returns False if it is nothing that a OneFlow log says."""
        if self.field is not None and self.field(line):
            return True
        body = self._body
        if body is not None:
            if body.add(number, line):
                if body.is_finished:
                    self._end_body()
                return True
            self._end_body()
        return not line or self._record(number, line)

    def close(self) -> None:
        """Ends all that is open: the log has ended."""
        skipped = self._log.skipped.count
        is_cut = self._body is not None and self._body.is_cut
        self._end_body()
        self._log.is_cut = self._log.is_cut or is_cut
        if is_cut and self._log.skipped.count == skipped:
            self._log.cut(*self._begun)
        if self._tree.listing is not None and self._tree.is_open:
            self._log.cut(self._tree.listing.line, f"the listing of {self._tree.listing.name}")
        self._tree.end()

    def _end_body(self) -> None:
        body, self._body, self.field = self._body, None, None
        if body is not None:
            body.close()

    def _start(self, body: Body, number: int, first: str) -> None:
        """Begins a record of several lines; `first` is what this line has of it."""
        self._body, self._begun = body, (number, first)
        self.field = body.field if isinstance(body, ProtoBody) else None
        if not first:
            return
        if not body.add(number, first):
            self._log.skipped.add(number, first, "not the beginning of the record that it should be")
        if body.is_finished:
            self._end_body()

    def _record(self, number: int, line: str) -> bool:
        if head := glog(line):
            self._log.count(head)
            self._thread = head.thread
            if head.severity == "F":
                self._log.error(number, head.message)
            self._message(number, head.message, head)
            return True
        if line[0] == ")":
            if line == ")":
                self._tree.bracket()
            return True
        if tree_word(line) is not None:
            return self._tree_line(number, line)
        if line[0] == "[" and self._in_brackets(number, line):
            return True
        return self._message(number, line, None) or self._text(number, line)

    def _in_brackets(self, number: int, line: str) -> bool:
        """Takes a line of LiBai's logger, or one of the tree with its level before it."""
        level, _, rest = line.partition("]")
        if level not in LEVELS or tree_word(rest) is None:
            return self._log.metrics.line(line, self._rank)
        if level == "[ERROR":
            self._log.error(number, rest)
        return self._tree_line(number, rest)

    def _text(self, number: int, line: str) -> bool:
        """Takes a line of its own: the head of a listing, or why the run ended."""
        if line.endswith(HEADER):
            self._header = number
        elif line.startswith(TRACEBACK):
            self._body = TracebackBody(self._log.error)
        elif line.startswith(CRASHES):
            self._log.error(number, line)
        else:
            return False
        return True

    def _tree_line(self, number: int, line: str) -> bool:
        word = tree_word(line) or ""
        text = line[line.index(word) + len(word) :]
        is_listed = self._tree.listing is not None or text.endswith("): (")
        self._log.tree_lines["listed" if is_listed else "built"][word.removesuffix(":")] += 1
        if word == "GRAPH:":
            self._graph(number, text)
        elif word == "MODULE:":
            self._tree.module(text)
        elif word == "GraphModule:":
            self._tree.block(text)
        elif word == "OPERATOR:":
            self._tree.operator(number, line)
        elif word != "CONFIG:":
            self._start(self._tree.tensor(word), number, line)
        return True

    def _graph(self, number: int, text: str) -> None:
        name, _, rest = text.partition(":")
        type_, _, stage = rest.partition(")")
        if stage.strip() == ": (":
            self._tree.begin(number - (self._header == number - 1), name, type_)
            return
        self._log.graphs.classes.setdefault(name, type_)
        self._tree.graph = name
        if self._log.stages.line(number, name, stage.strip().removeprefix("'s").strip()):
            self._log.graphs.built(name, self._rank)

    def _message(self, number: int, text: str, head: Glog | None) -> bool:
        """Takes what a message says, with or without glog's head; returns False if it is nothing that is kept."""
        facts = self._log.facts
        if (at := text.find(LAZY)) >= 0:
            graph, _, rest = text[at + len(LAZY) :].partition(" ")
            return self._lazy(number, graph, rest)
        if " compiling with pass " in text or " time elapsed: " in text:
            return head is not None and facts.pass_line(text, moment(head.date, head.time), head.thread)
        if text.startswith(SETS) and " include: " in text:
            name, _, first = text.partition(" include: ")
            self._start(self._set(name, text), number, first)
            return True
        if "MiB" in text or "MemBlock id" in text:
            return facts.memory.line(text)
        if text.startswith("shape: "):
            return facts.memory.shape(text)
        if "Actor thread: " in text:
            facts.actor_threads += 1
            return True
        if "grad acc" in text:
            facts.gradient_accumulation.append(text.strip())
            return True
        return "compile time: " in text and facts.compiled(text)

    def _set(self, name: str, head: str) -> SetBody:
        def done(names: list[str], is_cut: bool) -> None:
            self._log.facts.sets.append({"set": name, "names": names, "is_cut": is_cut})

        return SetBody(head, done)

    def _lazy(self, number: int, graph: str, rest: str) -> bool:
        facts, graphs, key = self._log.facts, self._log.graphs, (graph, self._rank, self._thread)
        if rest.startswith("try to add op:"):
            self._start(self._proto(number, key, is_taken=False), number, rest.partition(":")[2].strip())
        elif rest.startswith("add op"):
            self._add(number, key, rest)
        elif rest.startswith("infer and"):
            tensors = graphs.tensors(*key)
            body = ProtoBody(number, lambda fields, _: tensors.update(described(fields)), self._log.skipped)
            self._start(body, number, rest.partition(":")[2].strip())
        elif JOB_VARIABLE in rest:
            facts.job_variable(graph, rest)
        elif rest.endswith("run with inplace."):
            facts.in_place.append(rest.partition("name ")[2].partition(" ")[0])
        else:
            return False
        return True

    def _add(self, number: int, key: tuple[str, str | None, str | None], rest: str) -> None:
        whole = self._proto(number, key, is_taken=True)
        if rest.startswith("add op:"):
            self._start(whole, number, rest.partition(":")[2].strip())
            return
        body = AddBody(lambda name, is_free: self._added(number, key, name, is_free), lambda: whole)
        self._start(body, number, rest.partition(":")[2].strip())

    def _proto(self, number: int, key: tuple[str, str | None, str | None], is_taken: bool) -> ProtoBody:
        def done(fields: Message, is_whole: bool) -> None:
            op = traced_op(fields, number)
            if op is None:
                self._log.skipped.add(number, "", "an op whose text has no name")
                return
            op.is_damaged = not is_whole
            (self._log.graphs.printed if is_taken else self._log.graphs.tried)(*key, op)

        return ProtoBody(number, done, self._log.skipped)

    def _added(self, number: int, key: tuple[str, str | None, str | None], name: str, is_free: bool) -> None:
        graphs = self._log.graphs
        if not name.isprintable() or " " in name or "\ufffd" in name:
            self._log.skipped.add(number, name, "no name of an op that was added")
            if (last := graphs.last_tried(*key)) is not None:
                last.is_added = True
            return
        op = graphs.added(*key, name, number)
        if is_free:
            op.kind = "constant"
