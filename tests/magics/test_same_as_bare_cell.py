"""In a real kernel: a cell below a magic of ours does what the bare cell does, and its trace is kept."""

import pytest

# A loop of one run is round the cell in the last.
MAGICS = ["%%optrace", "%%optime", "%%optime -r 1"]

BODIES = {
    "value": "y = x + 1\ny * 2",
    "value none": "y = x + 1\nNone",
    "value silenced": "y = x + 1\ny * 2;",
    "value silenced with comment": "x + 1;  # quiet",
    "statement last": "y = x + 1",
    "assignment expression": "(y := x + 1)",
    "leading blank lines": "\n\ny = x + 1\ny",
    "print": "print('a')\nx + 1",
    "stderr": "import sys\nprint('a', file=sys.stderr)\nx + 1",
    "warning": "import warnings\nx + 1\nwarnings.warn('careful')",
    "error in a function": "y = x + 1\n\n\ndef bad(z):\n    w = z * 3\n    raise KeyError('k')\n\n\nbad(y)",
    "error in a function of another cell": "a = 1\nb = 2\nc = 3\nfails()",
    "error at top level": "y = x + 1\na = 1\nb = 2\nundefined_name",
    "error in the last expression": "y = x + 1\na = 1\nb = 2\ny @ torch.ones(2)",
    "chained error": "a = x + 1\nb = 2\nc = 3\ntry:\n    1 / 0\nexcept Exception as e:\n    raise ValueError() from e",
    "exception group": "a = x + 1\nb = 2\nc = 3\nraise ExceptionGroup('several', [ValueError(1), KeyError(2)])",
    "await": "y = await later(x + 1)\nprint(y)",
    "await as last value": "await later(x + 1)",
    "await silenced": "await later(x + 1);",
    "await then error": "a = await later(x + 1)\nb = 2\nc = 3\nraise ValueError('v')",
    "async comprehension": "[value async for value in several()] + [x + 1]",
    "async with a task": "task = asyncio.ensure_future(later(x + 1))\nawait task",
    "time": "%time x + 1",
    "timeit": "%timeit -n1 -r1 x + 1",
    "shell": "x + 1\n!echo hello",
    "shell captured": "out = !echo hello\nx + 1\nout",
    "future import": "from __future__ import annotations\ndef f(a: undefined_name): return a\nf(x + 1)",
    "future import and await": "from __future__ import annotations\nawait later(x + 1)",
    "docstring and future import": "'''doc'''\nfrom __future__ import annotations\nx + 1",
    "system exit": "x + 1\nraise SystemExit(3)",
    "comment only": "# nothing here",
    "literal braces": "a = '{x} $x'\nx + 1\na",
    "nested run_cell": "x + 1\nget_ipython().run_cell('x * 3\\nx * 4')\nx * 5",
    "syntax error": "a = 1\nb = 2\nc = 3\nx +",
    "syntax error in brackets": "y = x + 1\nb = 2\nc = 3\nf(",
    "global statement": "global y\ny = x + 1\ny",
    "annotation": "y: int = x + 1\ny",
    "local functions": "ys = [x + i for i in range(2)]\nclass A:\n    z = x\nA.z",
    "last value is a name": "y = x + 1\ny",
    "displays": "from IPython.display import Markdown\nx + 1\nMarkdown('*m*')",
    "gradient": "w = x.clone().requires_grad_()\n(w * w).sum().backward()\nw.grad",
    "in-place": "y = x.clone()\ny.add_(1)",
}  # fmt: skip


STATE = "[repr(_), sorted(n for n in globals() if n[0] != '_')]"
# Python shows a warning once until its filters change: then each cell shows its own.
SHOWN_AGAIN = "__import__('warnings').catch_warnings().__enter__()"


# What nbkit shows below a cell takes a second to make: every sixth body shows it.
SHOWN = [*BODIES][::6]


@pytest.mark.parametrize("name", BODIES)
def test_outputs_error_and_value_are_those_of_the_bare_cell(kernel, name):
    body, quiet = BODIES[name], "" if name in SHOWN else " -q"
    kernel.value(SHOWN_AGAIN)
    bare = kernel.run(f"# bare\n{body}")
    bare_state = kernel.value(STATE)
    for magic in MAGICS:
        kernel.value(SHOWN_AGAIN)
        traced = kernel.run(f"{magic}{quiet}\n{body}")
        assert (magic, traced.comparable()) == (magic, bare.comparable())
        assert (magic, kernel.value(STATE)) == (magic, bare_state)


CLEANED = ["    y = x + 1\n    y", ">>> y = x + 1\n>>> y", "In [3]: y = x + 1\n   ...: y", "pinfo x"]


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("body", CLEANED)
def test_what_ipython_cleans_from_a_bare_cell_it_cleans_here(kernel, magic, body):
    assert kernel.run(f"{magic}\n{body}").comparable() == kernel.run(body).comparable()


@pytest.mark.parametrize("magic", MAGICS)
def test_the_value_is_in_out_under_the_cells_own_number(kernel, magic):
    kernel.run(f"{magic}\nx + 41")
    assert kernel.value("Out[max(Out)] is _, max(Out) == len(In) - 1, _.tolist()") == (True, True, [42.0] * 3)


@pytest.mark.parametrize("name", [name for name in BODIES if "x + 1" in BODIES[name] and "syntax" not in name])
def test_the_trace_of_every_body_is_kept(kernel, name):
    for magic in MAGICS:
        trace = f"_{magic.split()[0][2:]}"
        kernel.run(f"{trace} = None")
        reply = kernel.run(f"{magic} -q\n{BODIES[name]}")
        assert (magic, "aten.add.Tensor" in kernel.value(f"list({trace}.ops['op'])")) == (magic, True)
        assert (magic, kernel.value(f"{trace}.complete")) == (magic, reply.status == "ok")


@pytest.mark.parametrize("magic", MAGICS)
def test_an_error_shows_the_line_of_the_cell_and_once_only(kernel, magic):
    reply = kernel.run(f"{magic} -o trace\ny = x + 1\n\n\ndef bad():\n    raise KeyError('k')\n\nbad()")
    number = kernel.value("len(In) - 1")
    (text,) = reply.texts("error")
    assert f"Cell In[{number}], line 8" in text
    assert f"Cell In[{number}], line 6, in bad()" in text
    assert kernel.value("trace.complete, trace.meta['error']['type']") == (False, "KeyError")


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("last", ["x +", "break", "if x is None:\n    continue", "for i in []: pass\nelse: break"])
def test_a_syntax_error_makes_no_trace(kernel, magic, last):
    kernel.run("_optrace = _optime = None")
    bare, reply = kernel.run(f"# bare\nx + 1\n{last}"), kernel.run(f"{magic}\nx + 1\n{last}")
    assert (reply.comparable(), reply.error[0]) == (bare.comparable(), "SyntaxError")
    assert kernel.value("_optrace is _optime is None") is True
    assert reply.texts("display") == []


WAITS = {"sync": "time.sleep(20)", "await": "for i in range(400):\n    await asyncio.sleep(0.05)"}


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_an_interrupt_ends_the_cell_as_bare_and_keeps_the_trace(kernel, wait, magic):
    body = f"y = x + 1\na = 1\nb = 2\nprint('ready', flush=True)\n{wait}"
    bare = kernel.run(f"# bare\n{body}", on_print=kernel.manager.interrupt_kernel)
    traced = kernel.run(f"{magic} -o trace\n{body}", on_print=kernel.manager.interrupt_kernel)
    assert traced.error[0] in {"KeyboardInterrupt", "CancelledError"}
    assert traced.comparable() == bare.comparable()
    assert kernel.value("trace.complete, 'aten.add.Tensor' in set(trace.ops['op'])") == (False, True)


@pytest.mark.parametrize("magic", MAGICS)
def test_the_last_value_is_formatted_outside_the_recording(kernel, magic):
    kernel.run("class Shows:\n    def __repr__(self): return str((x + 1).tolist())")
    reply = kernel.run(f"{magic} -o trace\nx * 2\nShows()")
    assert reply.texts("value") == ["[2.0, 2.0, 2.0]"]
    assert kernel.value("'aten.add.Tensor' in set(trace.ops['op'])") is False


@pytest.mark.parametrize("magic", MAGICS)
def test_the_last_value_is_held_by_nobody_else(kernel, magic):
    kernel.run(f"{magic} -q\nimport weakref\nheld = x + 1\nalive = weakref.ref(held)\nheld;")
    kernel.run("del held")
    assert kernel.value("alive() is None") is True
