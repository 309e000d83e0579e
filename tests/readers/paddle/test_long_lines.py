"""No line costs more than its length: nothing backtracks, whatever stands in it."""

from time import process_time

import pytest

LENGTH = 30_000
BOUND_S = 1.0
HEAD = "{ // block_idx:0  parent_idx:-1  forward_idx:-1  backward_idx:-1\n"
ATTRIBUTES = "{Out=['a']} = f(inputs={}, a = 1"
LINES = {
    "braces": "{" * LENGTH + "(inputs={",
    "open string": "{Out=['" + "a" * LENGTH,
    "escapes": "{Out=['" + "\\" * LENGTH,
    "strings": "{Out=[" + "'a', " * (LENGTH // 5),
    "type": "a." * LENGTH + "(inputs=",
    "equal names": ATTRIBUTES + ", b = 2" * (LENGTH // 7) + ")",
    "open lists": ATTRIBUTES + ", a = [" * (LENGTH // 7) + ")",
    "deep list": ATTRIBUTES + ", b = " + "[" * LENGTH + ")",
    "deep dist_attr": ATTRIBUTES + ", dist_attr = {" * (LENGTH // 4) + "}" * (LENGTH // 4) + ", x)",
    "blanks": ATTRIBUTES + ", b =" + " " * LENGTH + "c = 1)",
    "digits": ATTRIBUTES + ", b = " + "1" * LENGTH + ")",
    "types of a variable": "var a" + " : LOD_TENSOR.shape(" * (LENGTH // 20),
    "words": "persist " * (LENGTH // 8) + "var ",
    "headers": "{ // block" * (LENGTH // 10),
    "operands": '(%0) = "a.b" (' + "%1, " * (LENGTH // 4),
    "open attributes": '(%0) = "a.b" (%1) {' + "a:{" * (LENGTH // 3),
    "open PIR strings": '(%0) = "a.b" () {a:' + '"x\\' * (LENGTH // 3),
    "deep PIR list": '(%0) = "a.b" (%1) {a:' + "[" * LENGTH + "]" * LENGTH + "} : () -> tensor<1xf32>",
    "sizes": '(%0) = "a.b" () {} : () -> tensor<' + "1x" * LENGTH + ">",
    "brackets": "(a)" * LENGTH + ' = "',
    "dialects": '(%0) = "a' + ".b" * LENGTH,
    "messages": "blocks {\n" + "a {\n" * (LENGTH // 4),
}


@pytest.mark.parametrize("head", ["", HEAD])
@pytest.mark.parametrize("name", LINES)
def test_a_long_line_is_read_in_time(read, name, head):
    started = process_time()
    read(head + LINES[name] + "\n")
    assert process_time() - started < BOUND_S
