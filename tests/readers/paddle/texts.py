"""Holds small programs in every text that Paddle has had: hand-made, a record of each form."""

# A while loop with its gradient block, in the form of 2.1 to 2.6.
WHILE = """{ // block_idx:0  parent_idx:-1  forward_idx:-1  backward_idx:-1
    var x : LOD_TENSOR.shape(-1, 8).dtype(float32).stop_gradient(True)
    persist trainable param fc.w_0 : LOD_TENSOR.shape(8, 8).dtype(float32).stop_gradient(False), \
dist_attr = {tensor name: fc.w_0, process_mesh (annotated): {shape: [2], process_ids: [0,1], dim_names: [x]}, \
dims_mapping (annotated): [-1, 0]}
    persist param fc.b_0 : LOD_TENSOR.shape(8,).dtype(float32).stop_gradient(True)
    persist var table : SELECTED_ROWS.shape(16, 8).dtype(float32).stop_gradient(True)
    var cond_0 : LOD_TENSOR.shape(1,).dtype(bool).stop_gradient(True)
    var h : LOD_TENSOR.shape(-1, 8).dtype(float32).stop_gradient(False)
    var scopes : STEP_SCOPES)
    var list_0 : LOD_TENSOR_ARRAY)
    var h@GRAD : LOD_TENSOR.shape(-1, 8).dtype(float32).stop_gradient(False)

    {Out=['cond_0']} = less_than(inputs={X=['x'], Y=['x']}, axis = -1, op_callstack = ['  File "model/train.py", \
line 12, in step', '    while less(x, y):', '  File "/usr/lib/site-packages/paddle/layers.py", line 99, in less'], \
op_role = 0)
    {Out=['h'], StepScopes=['scopes']} = while(inputs={Condition=['cond_0'], X=['x', 'fc.w_0']}, is_test = False, \
op_role = 0, sub_block = block[1])
    {X@GRAD=['h@GRAD', '@EMPTY@']} = while_grad(inputs={Out@GRAD=['h@GRAD'], X=['x', '@EMPTY@']}, op_role = 1, \
original_output_grad = ['h@GRAD'], sub_block = block[2])
    {Out=['h']} = slice(inputs={Input=['h']}, axes = [0], ends = Vars['cond_0', 'x'], op_role = 0, \
starts = Var['cond_0'])
    {} = run_program(inputs={X=['h']}, blocks = blocks[1, 2], op_role = 0)
    barrier(inputs={}, )
}
{ // block_idx:1  parent_idx:0  forward_idx:-1  backward_idx:2
    var t : LOD_TENSOR.shape(-1, 8).dtype(float32).stop_gradient(False)

    {Out=['t']} = mul(inputs={X=['x'], Y=['fc.w_0']}, op_role = 0)
    {Out=['h']} = tanh(inputs={X=['t']}, op_role = 0)
    {Out=['cond_0']} = less_than(inputs={X=['h'], Y=['x']}, op_role = 0)
}
{ // block_idx:2  parent_idx:0  forward_idx:1  backward_idx:-1
    var t@GRAD : LOD_TENSOR.shape(-1, 8).dtype(float32).stop_gradient(False)

    {X@GRAD=['t@GRAD']} = tanh_grad(inputs={Out@GRAD=['h@GRAD']}, op_role = 1)
}
"""

# The same multiplication, mean and update in each form.
MODERN = """{ // block 0
    var x : DENSE_TENSOR.shape(-1, 13).dtype(paddle.float32).stop_gradient(True)
    persist trainable param w : DENSE_TENSOR.shape(13, 10).dtype(float32).stop_gradient(False)
    persist var lr : DENSE_TENSOR.shape(1,).dtype(float32).stop_gradient(True)
    var y : DENSE_TENSOR.shape(-1, 10).dtype(float32).stop_gradient(False)
    var loss : DENSE_TENSOR.shape().dtype(float32).stop_gradient(False)
    var w@GRAD : DENSE_TENSOR.shape(13, 10).dtype(float32).stop_gradient(False)

    {Out=['y']} = mul(inputs={X=['x'], Y=['w']}, op_role = 0, x_num_col_dims = 1)
    {Out=['loss']} = mean(inputs={X=['y']}, op_role = 256)
    {Y@GRAD=['w@GRAD']} = mul_grad(inputs={X=['x'], Y=['w']}, op_role = 1)
    {ParamOut=['w']} = sgd(inputs={Grad=['w@GRAD'], LearningRate=['lr'], Param=['w']}, op_role = 2)
}
"""
VERSION_2_0 = (
    MODERN.replace("DENSE_TENSOR", "fluid.VarType.LOD_TENSOR")
    .replace(".dtype(paddle.float32)", ".astype(VarType.FP32)")
    .replace(".dtype(float32)", ".astype(VarType.FP32)")
    .replace(".stop_gradient(True)", "")
    .replace(".stop_gradient(False)", "")
)
VERSION_1_8 = (
    VERSION_2_0.replace(" param ", " parameter ")
    .replace("(-1, 13)", "(-1L, 13L)")
    .replace("['", "[u'")
    .replace("(1,)", "(1L,)")
)
VERSION_2018 = """{ // block 0
    var x : fluid.VarType.LOD_TENSOR.shape(-1L, 13L).astype(VarType.FP32)
    persist trainable parameter w : fluid.VarType.LOD_TENSOR.shape(13L, 10L).astype(VarType.FP32)
    persist var lr : fluid.VarType.LOD_TENSOR.shape(1L,).astype(VarType.FP32)
    var y : fluid.VarType.LOD_TENSOR.shape(-1L, 10L).astype(VarType.FP32)
    var loss : fluid.VarType.LOD_TENSOR.shape().astype(VarType.FP32)
    var w@GRAD : fluid.VarType.LOD_TENSOR.shape(13L, 10L).astype(VarType.FP32)

    y = mul(inputs=[x, w], x_num_col_dims = 1, op_role = 0)
    loss = mean(inputs=[y], op_role = 256)
    Y@GRAD=[u'w@GRAD'] = mul_grad(inputs=[u'x', u'w'], op_role = 1)
    ParamOut=[u'w'] = sgd(inputs=Grad=[u'w@GRAD'], LearningRate=[u'lr'], Param=[u'w'], op_role = 2)
}
"""


def _variable(name, dims, persistable=False):
    sizes = "".join(f"          dims: {size}\n" for size in dims)
    return (
        f'  vars {{\n    name: "{name}"\n    type {{\n      type: LOD_TENSOR\n      lod_tensor {{\n        tensor {{\n'
        f"          data_type: FP32\n{sizes}        }}\n        lod_level: 0\n      }}\n    }}\n"
        f"    persistable: {str(persistable).lower()}\n  }}\n"
    )


def _operation(kind, inputs, outputs, *attributes):
    def slots(field, held):
        return "".join(
            f'    {field} {{\n      parameter: "{slot}"\n      arguments: "{name}"\n    }}\n'
            for slot, name in held.items()
        )

    attrs = "".join(
        f'    attrs {{\n      name: "{name}"\n      type: {type_}\n      {field}: {value}\n    }}\n'
        for name, type_, field, value in attributes
    )
    return f'  ops {{\n{slots("inputs", inputs)}{slots("outputs", outputs)}    type: "{kind}"\n{attrs}  }}\n'


PROTOBUF = (
    "blocks {\n  idx: 0\n  parent_idx: -1\n"
    + _variable("x", (-1, 13))
    + _variable("w", (13, 10), True)
    + _variable("lr", (1,), True)
    + _variable("y", (-1, 10))
    + _variable("loss", ())
    + _variable("w@GRAD", (13, 10))
    + _operation(
        "mul", {"X": "x", "Y": "w"}, {"Out": "y"}, ("op_role", "INT", "i", 0), ("x_num_col_dims", "INT", "i", 1)
    )
    + _operation("mean", {"X": "y"}, {"Out": "loss"}, ("op_role", "INT", "i", 256))
    + _operation("mul_grad", {"X": "x", "Y": "w"}, {"Y@GRAD": "w@GRAD"}, ("op_role", "INT", "i", 1))
    + _operation(
        "sgd", {"Grad": "w@GRAD", "LearningRate": "lr", "Param": "w"}, {"ParamOut": "w"}, ("op_role", "INT", "i", 2)
    )
    + "}\nversion {\n  version: 0\n}\nop_version_map {\n}\n"
)

PIR = """{
    (%0) = "builtin.parameter" () {is_distributed:[false],is_parameter:[true],need_clip:[true],\
parameter_name:"fc.w_0",persistable:[true],stop_gradient:[false],trainable:[true]} : () -> tensor<8x8xf32>
    (%1) = "pd_op.data" () {dtype:float32,name:"x",place:Place(undefined:0),shape:[-1,8],\
stop_gradient:[true]} : () -> tensor<-1x8xf32>
    (%2) = "pd_op.data" () {dtype:float32,name:"fc.w_0_moment1_0",persistable:[true],place:Place(cpu),shape:[8,8],\
stop_gradient:[true]} : () -> tensor<8x8xf32>
    (%3) = "pd_op.full" () {dtype:int64,place:Place(cpu),shape:[],stop_gradient:[true],value:10} : () -> tensor<i64>
    (%4) = "pd_op.matmul" [id:7] (%1, %0) {stop_gradient:[false],sym_shape_str:"shape[S0, 8], data[NULL]",\
transpose_x:false,transpose_y:false} : (tensor<-1x8xf32>, tensor<8x8xf32>) -> tensor<-1x8xf32>
    (%5) = "pd_op.less_than" (%3, %3) {stop_gradient:[true]} : (tensor<i64>, tensor<i64>) -> tensor<b>
    (%6, %7) = "pd_op.while" (cond=%5, inputs=%4, %3) {\x20
    ^%arg_0 {stop_gradient:false}, %arg_1 {stop_gradient:true}
        (%8) = "pd_op.tanh" (%arg_0) {stop_gradient:[false]} : (tensor<-1x8xf32>) -> tensor<-1x8xf32>
        (%9) = "pd_op.if" (%5) {stop_gradient:[false]} -> tensor<-1x8xf32> {
            () = "cf.yield" (%8) {} : (tensor<-1x8xf32>) ->\x20
        } else {
            (%10) = "pd_op.scale" (%8, <<NULL VALUE>>) {bias:0,op_role:1,scale:-1.5} : (tensor<-1x8xf32>, \
<<NULL TYPE>>) -> tensor<-1x8xf32>
            () = "cf.yield" (%10) {} : (tensor<-1x8xf32>) ->\x20
        }
        () = "cf.yield" (%5, %9, %arg_1) {} : (tensor<b>, tensor<-1x8xf32>, tensor<i64>) ->\x20
    }
    (%11) = "builtin.combine" (%6, %4) {} : (tensor<-1x8xf32>, tensor<-1x8xf32>) -> vec[tensor<-1x8xf32>,\
tensor<-1x8xf32>]
    (%12) = "cinn_op.fusion" () -> tensor<-1x8xf32> {
        (%13) = "pd_op.concat" (%11, %3) {} : (vec[tensor<-1x8xf32>,tensor<-1x8xf32>], \
tensor<i64>) -> tensor<-1x8xf32>
        () = "cf.yield" (%13) {} : (tensor<-1x8xf32>) ->\x20
    }
    (%14) = "pd_op.all_reduce_" (%12) {op_dist_attr:{mesh:{shape:[2],process_ids:[0,1],dim_names:[x]},\
operand(0):{dims_maping:[-1,-1]}},ring_id:36} : (pd_dist.tensor<4x8xf32, mesh_shape:[2],dims_mappings:[-1,\
-1]>) -> pd_dist.tensor<4x8xf32, mesh_shape:[2],dims_mappings:[-1,-1]>
    () = "builtin.shadow_output" (%14) {output_name:"out"} : (tensor<-1x8xf32>) ->\x20
    (%15) = "pd_op.matmul_grad" (%1, %0, %14) {} : (tensor<-1x8xf32>, tensor<8x8xf32>, \
tensor<-1x8xf32>) -> tensor<0xi64>
}
"""
# Types carried a dialect, values their types, and `while` no blank.
PIR_2_6 = """{
 (%0) = "builtin.parameter" () {parameter_name:"fc.w_0"} : () -> pd_op.tensor<8x8xf32>
 (%1) = "pd_op.data" () {dtype:(pd_op.DataType)float32,is_persisable:[false],name:"x",\
place:(pd_op.Place)Place(undefined:0),shape:(pd_op.IntArray)[-1,8],\
stop_gradient:[true]} : () -> pd_op.tensor<-1x8xf32>
 (%2) = "pd_op.full" () {value:(Float)0,dtype:(pd_op.DataType)bool} : () -> pd_op.tensor<1xb>
 (%3) = "pd_op.while"(cond=%2, inputs=%1) {\x20
 ^%arg0
  (%4) = "pd_op.matmul" (%arg0, %0) {transpose_x:(Bool)false} : (pd_op.tensor<-1x8xf32>, \
pd_op.tensor<8x8xf32>) -> pd_op.tensor<-1x8xf32>
  () = "cf.yield" (%2, %4) {} : (pd_op.tensor<1xb>, pd_op.tensor<-1x8xf32>) ->\x20
 }
 (%5) = pd_op.if (%2) {stop_gradient:[true]} -> pd_op.tensor<-1x8xf32>{
  () = "cf.yield" (%1) {} : (pd_op.tensor<-1x8xf32>) ->\x20
 } else {
  () = "cf.yield" (%3) {} : (pd_op.tensor<-1x8xf32>) ->\x20
 }
}
"""
PIR_2024 = PIR_2_6.replace("pd_op.tensor", "builtin.tensor")
