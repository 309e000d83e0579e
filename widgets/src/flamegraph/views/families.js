// The family of an op by its name: what kind of work it does.

export const FAMILIES = [
  "matmul", "attention", "convolution", "normalization", "elementwise", "reduction", "indexing", "copy and layout",
  "communication", "module or block", "autograd", "device driver", "other",
];

/** First match decides, so narrow patterns stand before wide ones. @type {[string, RegExp][]} */
const PATTERNS = [
  ["communication", /c10d|nccl|gloo|all_?reduce|all_?gather|reduce_?scatter|broadcast_coalesced|all_?to_?all/],
  ["device driver", /^(cuda|cu|hip|xpu|npu|mps)[A-Z]|^aclrt/],
  ["module or block", /^torch\.optim\./],
  ["autograd", /^autograd::|Backward\d*$|^torch\.autograd\.|AccumulateGrad|_hook\b/],
  ["attention", /attention|flash|fmha|\bsdpa\b/],
  ["convolution", /conv|winograd/],
  ["matmul", /(^|[._])(add|b|badd|addb|sp|v|_scaled_)?mm([._]|$)|(^|[._])(add)?mv([._]|$)|matmul|linear|einsum|gemm|bilinear|cutlass|ampere_|sgemv/],
  ["normalization", /norm(?!al)|rsqrt_mean|moments/],
  ["copy and layout", /[._](t|to|_to_copy)_?([.]|$)/],
  ["copy and layout", /memcpy|memset|copy|clone|contiguous|(^|[._])(cat|stack|view|reshape|transpose|permute|expand|slice|select|squeeze|unsqueeze|split|chunk|unbind|narrow|as_strided|detach|alias|empty|zeros|ones|full|fill|zero|arange|new_|repeat|resize|roll|pad|constant_pad|flatten|unflatten|movedim|lift)\w*([._]|$)/i],
  ["indexing", /embedding|index|gather|scatter|masked|take|topk|sort|where|nonzero|unique|tril|triu|one_hot/],
  ["reduction", /softmax|loss|(^|[._])(sum|mean|std|var|max|min|amax|amin|argmax|argmin|prod|logsumexp|cumsum|cumprod|any|all|count_nonzero|pool)\w*([._]|$)|reduce/],
  ["elementwise", /elementwise|vectorized|foreach|(^|[._])(add|sub|mul|div|pow|exp|log|sqrt|rsqrt|tanh|sigmoid|silu|gelu|relu|neg|abs|sin|cos|maximum|minimum|clamp|lerp|addcmul|addcdiv|eq|ne|lt|gt|le|ge|bitwise|logical|sign|floor|ceil|round|erf|reciprocal|square|threshold|dropout|bernoulli|rand|randn|normal|uniform|hardswish|softplus|logsigmoid|native_dropout|isnan|isfinite|isinf)\w*([._]|$)/],
];

/** Returns the index into FAMILIES. @param {string} op @param {string} level */
export function familyOf(op, level) {
  if (level === "module") return FAMILIES.indexOf("module or block");
  if (level === "runtime") return FAMILIES.indexOf("device driver");
  for (const [family, pattern] of PATTERNS) {
    if (pattern.test(op)) return FAMILIES.indexOf(family);
  }
  return FAMILIES.indexOf(level === "range" ? "module or block" : "other");
}
