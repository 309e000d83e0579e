"""The kernel dialect, which Paddle logs after lowering, names its kernels, and stands behind a comment."""

import nbkit

KEY = "kernel_key:<backend:GPU|layout:NCHW|dtype:float32>"
BEFORE = """{
    (%0) = "builtin.parameter" () {is_parameter:[true],parameter_name:"w",persistable:[true]} : () -> tensor<8x16xf32>
    (%1) = "pd_op.data" () {name:"x",shape:[4,8]} : () -> builtin.tensor<4x8xf32>
    (%2) = "pd_op.matmul" (%1, %0) {struct_name:"/Net/up/"} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    (%3) = "pd_op.scale" (%2) {bias:0,scale:0.353553} : (tensor<4x16xf32>) -> tensor<4x16xf32>
}
"""
AFTER = f"""{{ // Kernel Dialect
    (%0) = "builtin.parameter" () {{parameter_name:"w",persistable:[true]}} : () -> gpu_tensor<8x16xf32>
    (%1) = "data(phi_kernel)" () {{{KEY},kernel_name:"data",name:"x",op_name:"pd_op.data"}} : () -> cpu_tensor<4x8xf32>
    (%2) = "shadow_feed(phi_kernel)" (%1) {{{KEY}}} : (cpu_tensor<4x8xf32>) -> gpu_tensor<4x8xf32>
    (%3) = "matmul(phi_kernel)" (%2, %0) {{{KEY},op_name:"pd_op.matmul"}} : (a<1>, b<1>) -> gpu_tensor<4x16xf16>
}}
"""
LOG = "I0104 05:12:19.48002{n} 123 pir_interpreter.cc:1264] {line}\n"


def loaded(tmp_path, text):
    (tmp_path / "dump.txt").write_text(text)
    return nbkit.load(tmp_path / "dump.txt")


def rows(trace, graph):
    nodes = trace.nodes[trace.nodes["graph"] == graph]
    return list(zip(nodes["kind"], nodes["op"].fillna(nodes["name"]), strict=True))


def test_programs_before_and_after_lowering_are_kept_apart(tmp_path):
    trace = loaded(tmp_path, f"// before\n{BEFORE}\n// after\n{AFTER}")
    state = [("parameter", "w"), ("input", "x")]
    assert rows(trace, "block 0") == [*state, ("op", "pd_op.matmul"), ("op", "pd_op.scale")]
    assert rows(trace, "program 2 block 0") == [*state, ("op", "pd_op.shadow_feed"), ("op", "pd_op.matmul")]
    last = trace.nodes.iloc[-1]
    assert (last["device"], last["dtype"], last["shape"]) == ("gpu", "float16", "[4, 16]")
    assert len(trace.edges) == 3 + 3 and trace.meta["skipped_lines"] == [] and trace.meta["complete"]


def test_the_layer_is_the_module_and_constants_of_six_digits_are_told(tmp_path):
    trace = loaded(tmp_path, BEFORE)
    assert trace.nodes.set_index("op")["module"].to_dict()["pd_op.matmul"] == "Net.up"
    (note,) = trace.meta["notes"]
    assert "six digits: 0.353553" in note
    assert loaded(tmp_path, BEFORE.replace("0.353553", "0.5")).meta["notes"] == []


def test_lines_of_a_log_are_read_and_other_lines_make_no_op(tmp_path):
    lines = AFTER.splitlines()[1:-1]
    text = "".join(LOG.format(n=n, line=line) for n, line in enumerate(lines))
    other = LOG.format(n=9, line="Value   : (   [0x81e4bf0]) = pd_op.data()")
    trace = loaded(tmp_path, text + other + text)
    expected = [("parameter", "w"), ("input", "x"), ("op", "pd_op.shadow_feed"), ("op", "pd_op.matmul")]
    assert rows(trace, "block 0") == expected and rows(trace, "program 2 block 0") == expected
    assert [row["reason"] for row in trace.meta["skipped_lines"]] == ["is no operation"]
