"""Asks each verb about six models as people write them, and says what stands first and whether it is right.

Right means: what is said agrees with what torch says by itself (a plain clock, torch.profiler, FlopCounterMode, the
parameters, the bits of the bare step), correct steps are called correct, and the mistake of the sixth is named first.

Run from the repository root: `python bench/first_hour.py [--model PATTERN] [--verb PATTERN]`. Each model has a process
of its own. Writes out/bench/first_hour.md, and ends with status 1 where an answer is wrong. Five minutes, a quarter of
it torch compiling.
"""

import argparse
import copy
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from fnmatch import fnmatch
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry

import nbkit
from bench.first_hour_models import MODELS, Step

OUT = Path(__file__).parents[1] / "out" / "bench" / "first_hour.md"
NOTHING_WRONG = re.compile(r"Nothing wrong found|No errors and no warnings")
# An answer, and what is wrong about it; empty if nothing is.
Answer = tuple[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="*", help="models, as a pattern")
    parser.add_argument("--verb", default="*", help="verbs, as a pattern")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        for verb, answer in answers(MODELS[options.alone](), options.verb):
            print(json.dumps([verb, *answer]), flush=True)
        return 0
    rows = []
    for name in (name for name in MODELS if fnmatch(name, options.model)):
        command = [sys.executable, __file__, "--alone", name, "--verb", options.verb]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        rows += [[name, *json.loads(line)] for line in run.stdout.splitlines() if line.startswith('["')]
        if run.returncode:
            rows.append([name, "(process)", "", f"ended with status {run.returncode}"])
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n".join(table(rows)) + "\n")
    print(text)
    return int(any(fault for *_, fault in rows))


def table(rows: list[list[str]]) -> Iterator[str]:
    verbs = list(dict.fromkeys(verb for _, verb, *_ in rows))
    for verb in verbs:
        faults = [fault for _, name, _, fault in rows if name == verb]
        yield f"- {verb}: {sum(not fault for fault in faults)} of {len(faults)} right"
    yield from ("", "| model | verb | what it says first | what is wrong about it |", "|---|---|---|---|")
    yield from ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def answers(step: Step, pattern: str) -> Iterator[tuple[str, Answer]]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    step.train()
    for verb, ask in VERBS.items():
        if fnmatch(verb, pattern):
            begin = time.perf_counter()
            try:
                said, fault = ask(step)
            except Exception as error:
                said, fault = "", f"{type(error).__name__}: {str(error)[:300]}"
            print(f"{verb}: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
            yield verb, (said, fault)


def recorded(verb: AbstractContextManager[nbkit.Trace], step: Step) -> nbkit.Trace:
    with verb as trace:
        step.train()
    return trace


def first(trace: nbkit.Trace) -> str:
    brief = json.loads(trace.brief(form="json"))
    return str(next(iter(brief["verdict"]), brief["ran"]))


def judged(trace: nbkit.Trace, *, is_judge: bool = True) -> Answer:
    """The answer about a correct step: no error, no warning, nothing cut off."""
    findings = trace.frames.get("findings")
    rows = [] if findings is None else findings[findings["severity"] != "hint"]["message"].tolist()
    said = first(trace)
    if rows or not trace.complete:
        return said, f"found: {rows[0]}" if rows else "incomplete"
    return said, "" if not is_judge or NOTHING_WRONG.search(said) else "does not say that nothing is wrong"


def mistaken(trace: nbkit.Trace, step: Step) -> Answer:
    """The answer of a verb that names what is wrong with the sixth step."""
    if step.mistake is None:
        return judged(trace)
    rules = trace.findings[trace.findings["severity"] != "hint"]["rule"].tolist()
    return first(trace), "" if rules[:1] == [step.mistake] else f"{step.mistake} is not first of {rules}"


def optime(step: Step) -> Answer:
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        step.train()
        times.append((time.perf_counter() - begin) * 1e3)
    said = first(trace := nbkit.optime(warmup=1, repeats=7).run(step.train))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step.train()
    averages = [event for event in profile.key_averages() if event.key.startswith("aten::")]
    slowest = [event.key for event in sorted(averages, key=lambda event: -event.self_cpu_time_total)[:5]]
    number = re.match(r"(?:about )?([\d.,]+) (us|ms|s) per step", said)
    if number is None:
        return said, "does not begin with the time of a step"
    took = float(number[1].replace(",", "")) * {"us": 1e-3, "ms": 1, "s": 1e3}[number[2]]
    bare = statistics.median(times)
    if not bare / 2 < took < bare * 2.5:
        return said, f"a bare step takes {bare:.1f} ms"
    named = re.findall(r"aten\.\w+", said)
    if not named or named[0].replace(".", "::") not in slowest:
        return said, f"slowest are {slowest}"
    return judged(trace, is_judge=False) if re.search(r"backward \d+ %", said) else (said, "names no phase")


def opcost(step: Step) -> Answer:
    trace = recorded(nbkit.opcost(), step)
    with FlopCounterMode(display=False) as counter:
        torch.compiler.set_stance("force_eager")
        step.train()
    torch.compiler.set_stance("default")
    packets = {str(packet) for packet in flop_registry}
    ops = trace.ops.merge(trace.costs[["op_id", "flops"]], on="op_id", suffixes=("_run", ""))
    ops = ops[ops["op"].str.rpartition(".")[0].isin(packets)]
    share = ops["flops"].sum() / max(counter.get_total_flops(), 1)
    said, fault = judged(trace, is_judge=False)
    return said, fault or ("" if abs(share - 1) <= 0.01 else f"{share:.3f} times the FLOPs of FlopCounterMode")


def optrace(step: Step) -> Answer:
    trace = recorded(nbkit.optrace(values="stats"), step)
    said, fault = judged(trace, is_judge=False)
    return said, fault or (
        "a NaN or an Inf of a correct step" if re.search(r"\bNaN\b.*first|\bInf\b.*first", said) else ""
    )


def opgraph(step: Step) -> Answer:
    trace = nbkit.opgraph(step.model)
    count = sum(parameter.numel() for parameter in step.model.parameters())
    text = trace.brief()
    return first(trace), "" if f"{count:,} parameters" in text else f"{count:,} parameters are not said"


def opcapture(step: Step) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        trace = recorded(nbkit.opcapture(folder), step)
        replayed = nbkit.opreplay(folder)
    same = replayed.replayed["is_same"]
    said = f"{first(trace)} Then opreplay: {first(replayed)}"
    return said, "" if len(same) and same.all() else f"{same.sum()} of {len(same)} calls have the captured bits"


def same_step(make: Callable[[], AbstractContextManager[nbkit.Trace]], step: Step) -> Answer:
    """The answer of a verb that runs ops elsewhere: here that must change no bit of the loss."""
    state, generator = copy.deepcopy(step.model.state_dict()), torch.get_rng_state()
    bare = step.train()
    step.model.load_state_dict(state)
    torch.set_rng_state(generator)
    with make() as trace:
        loss = step.train()
    said, fault = judged(trace, is_judge=False)
    return said, fault or ("" if loss == bare else f"the loss is {loss}, bare {bare}")


def opbisect(step: Step) -> Answer:
    said = first(nbkit.opbisect(step.train, lambda loss: loss == loss, state=step.model))
    return said, "" if "nothing to find" in said else "the step passes its check"


def opalign(step: Step) -> Answer:
    was_training = step.model.training
    step.model.eval()
    said = first(nbkit.opalign(step.model, copy.deepcopy(step.model), inputs=step.inputs))
    step.model.train(was_training)
    return said, "" if re.search(r"\bagree", said) else "a model and its copy agree"


def opreport(step: Step) -> Answer:
    traces = [
        nbkit.optime(warmup=1, repeats=3).run(step.train), recorded(nbkit.opcheck(), step),
        recorded(nbkit.opdiff(), step), recorded(nbkit.optrace(values="stats"), step),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        page = nbkit.opreport(*traces, path=Path(folder) / "report.html").read_text()
    title = re.search(r"<title>(.*?)</title>", page)
    said = title[1] if title else ""
    return said, "" if type(
        step.model
    ).__name__ in said and "4 traces" not in said else "four traces of one step are not one"


def opdoctor(step: Step) -> Answer:
    said, fault = mistaken(trace := recorded(nbkit.opdoctor(), step), step)
    text = trace.brief()
    return said, fault or (
        "" if re.search(r"[\d.]+ (us|ms|s)\b.*[\d.]+ [KMG]iB", text, re.DOTALL) else "no time or no peak"
    )


VERBS: dict[str, Callable[[Step], Answer]] = {
    "opdoctor": opdoctor,
    "optime": optime,
    "opcheck": lambda step: judged(recorded(nbkit.opcheck(), step)),
    "opaudit": lambda step: mistaken(recorded(nbkit.opaudit(), step), step),
    "opdiff": lambda step: judged(recorded(nbkit.opdiff(), step)),
    "opcost": opcost,
    "optrace": optrace,
    "opgraph": opgraph,
    "opcapture, opreplay": opcapture,
    "opfallback": lambda step: same_step(lambda: nbkit.opfallback(), step),
    "opcast": lambda step: same_step(lambda: nbkit.opcast("bfloat16", dry_run=True), step),
    "opbisect": opbisect,
    "opstable": lambda step: judged(recorded(nbkit.opstable(), step)),
    "opalign": opalign,
    "opreport": opreport,
}

if __name__ == "__main__":
    sys.exit(main())
