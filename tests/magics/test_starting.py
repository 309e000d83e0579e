"""A recorder that one cell starts and another one stops has seen the cells between, magics and failures too."""


def test_cells_between_start_and_stop_are_recorded(kernel):
    started = kernel.run("import nbkit\nrecorder = nbkit.optrace()\nrecorder.start()")
    assert started.outputs == [("value", "<optrace, recording since start(); stop() gives its trace>")]
    kernel.run("y = x.exp()")
    kernel.run("%%opcheck\nz = y.sin()")
    assert kernel.run("fails()").error[0] == "ValueError"
    kernel.run("z = y.cos()")
    kernel.run("trace = recorder.stop()")
    aten = "[op.split('.')[1] for op in trace.ops['op'] if op.startswith('aten')]"
    assert kernel.value(f"(trace.complete, {aten})") == (True, ["exp", "sin", "mul", "cos"])
