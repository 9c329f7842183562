"""Rewrites that mean the same: exact ones, and those that only round otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

from tests.quality.onnx_pairs.edits import Edit, array, attribute, both, constant, put, put_nodes, written

F32 = np.float32


# ---------------------------------------------------------------------- those that every model allows


def renamed(model: onnx.ModelProto) -> None:
    """Gives every value between input and output another name, and every node one."""
    kept = {v.name for v in (*model.graph.input, *model.graph.output)} | {""}
    for number, item in enumerate(model.graph.node):
        item.name = f"node/{number}"
        for names in (item.input, item.output):
            changed = [n if n in kept else f"v.{n}" for n in names]
            del names[:]
            names.extend(changed)
    for held in model.graph.initializer:
        held.name = f"v.{held.name}"
    del model.graph.value_info[:]


def interface_renamed(model: onnx.ModelProto) -> None:
    """Gives inputs and outputs other names."""
    names = {v.name: f"{v.name}_" for v in (*model.graph.input, *model.graph.output)}
    for value in (*model.graph.input, *model.graph.output):
        value.name = names[value.name]
    for item in model.graph.node:
        for held in (item.input, item.output):
            changed = [names.get(n, n) for n in held]
            del held[:]
            held.extend(changed)


def constants_as_nodes(model: onnx.ModelProto) -> None:
    """Turns initializers into Constant nodes."""
    nodes = [helper.make_node("Constant", [], [t.name], value=t) for t in model.graph.initializer]
    rest = list(model.graph.node)
    del model.graph.initializer[:]
    put_nodes(model, [*nodes, *rest])


def weights_as_doubles(model: onnx.ModelProto) -> None:
    """Holds the weights as doubles and casts them down."""
    casts = []
    for held in list(model.graph.initializer):
        if held.data_type == onnx.TensorProto.FLOAT:
            put(model, f"{held.name}_wide", numpy_helper.to_array(held).astype(np.float64))
            casts.append(helper.make_node("Cast", [f"{held.name}_wide"], [held.name], to=onnx.TensorProto.FLOAT))
            model.graph.initializer.remove(held)
    put_nodes(model, [*casts, *model.graph.node])


def initializers_are_inputs(model: onnx.ModelProto) -> None:
    """Lists the initializers among the inputs, as files of IR version 3 do."""
    for held in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(held.name, held.data_type, list(held.dims)))


def identities(model: onnx.ModelProto) -> None:
    """Puts a Dropout that does nothing behind every input."""
    made = []
    for value in model.graph.input:
        made.append(helper.make_node("Dropout", [value.name], [f"{value.name}_d"]))
        for item in model.graph.node:
            changed = [f"{value.name}_d" if n == value.name else n for n in item.input]
            del item.input[:]
            item.input.extend(changed)
    put_nodes(model, [*made, *model.graph.node])


def as_function(model: onnx.ModelProto) -> None:
    """Moves the whole graph into a local function."""
    body = onnx.NodeProto
    inputs = [v.name for v in (*model.graph.input, *model.graph.initializer)]
    outputs = [v.name for v in model.graph.output]
    nodes = []
    for item in model.graph.node:
        copy = body()
        copy.CopyFrom(item)
        nodes.append(copy)
    imports = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("local", "Whole", inputs, outputs, nodes, imports))
    model.opset_import.append(helper.make_opsetid("local", 1))
    put_nodes(model, [helper.make_node("Whole", inputs, outputs, domain="local")])


def other_order(model: onnx.ModelProto) -> None:
    """Sorts the nodes topologically in another order, the latest ready one first."""
    waiting, known = list(model.graph.node), {v.name for v in (*model.graph.input, *model.graph.initializer)} | {""}
    ordered = []
    while waiting:
        ready = next(n for n in reversed(waiting) if all(i in known for i in n.input))
        waiting.remove(ready)
        known |= set(ready.output)
        ordered.append(ready)
    put_nodes(model, ordered)


def in_double(model: onnx.ModelProto) -> None:
    """Computes the first matrix product, difference or mean in doubles."""
    wanted = ("MatMul", "Gemm", "Sub", "ReduceMean")
    found = next((n for n in model.graph.node if n.op_type in wanted), None)
    if found is None:
        return
    before, names = [], []
    for number, name in enumerate(found.input):
        before.append(helper.make_node("Cast", [name], [f"{name}_w{number}"], to=onnx.TensorProto.DOUBLE))
        names.append(f"{name}_w{number}")
    result = found.output[0]
    after = helper.make_node("Cast", [f"{result}_w"], [result], to=onnx.TensorProto.FLOAT)
    del found.input[:]
    found.input.extend(names)
    found.output[0] = f"{result}_w"
    place = list(model.graph.node).index(found)
    nodes = list(model.graph.node)
    put_nodes(model, [*nodes[:place], *before, found, after, *nodes[place + 1 :]])


def _converted(version: int) -> Edit:
    def edit(model: onnx.ModelProto) -> None:
        model.CopyFrom(version_converter.convert_version(model, version))

    return edit


def _by_tool(run: Callable[[onnx.ModelProto], onnx.ModelProto]) -> Edit:
    def edit(model: onnx.ModelProto) -> None:
        model.CopyFrom(run(model))

    return edit


def _onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxscript.optimizer

    return onnxscript.optimizer.optimize(model)


def _onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    return onnxslim.slim(model)


def _onnxsim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxsim

    return onnxsim.simplify(model)[0]


EVERYWHERE: dict[str, Edit] = {
    "renamed": renamed, "interface renamed": interface_renamed, "constants as nodes": constants_as_nodes,
    "weights as doubles": weights_as_doubles, "initializers are inputs": initializers_are_inputs,
    "dropout": identities, "one function": as_function, "another order": other_order, "a part in double": in_double,
    "opset 18": _converted(18), "opset 21": _converted(21), "onnxscript": _by_tool(_onnxscript),
    "onnxslim": _by_tool(_onnxslim), "onnxsim": _by_tool(_onnxsim),
}  # fmt: skip


# ---------------------------------------------------------------------- those of one model


def _bn_folded(model: onnx.ModelProto) -> None:
    w, b = array(model, "c1w"), array(model, "c1b")
    factor = array(model, "scale") / np.sqrt(array(model, "var") + F32(1e-3))
    put(model, "c1w", (w * factor[:, None, None, None]).astype(F32))
    put(model, "c1b", ((b - array(model, "mean")) * factor + array(model, "shift")).astype(F32))
    written("n1", "n1 = Identity(c1)")(model)


def _query_scaled(model: onnx.ModelProto) -> None:
    factor = array(model, "factor")
    put(model, "wq", array(model, "wq") * factor)
    put(model, "bq", array(model, "bq") * factor)
    written("s1", "s1 = Identity(s0)")(model)


def _projections_merged(model: onnx.ModelProto) -> None:
    put(model, "wall", np.concatenate([array(model, n) for n in ("wq", "wk", "wv")], axis=1))
    put(model, "ball", np.concatenate([array(model, n) for n in ("bq", "bk", "bv")]))
    put(model, "eights", np.array([8, 8, 8]))
    merged = "all0 = MatMul(x, wall) all1 = Add(all0, ball) q, k, v = Split<axis = 2>(all1, eights)"
    written("q0 q k0 k v0 v", merged)(model)


def _conv_for_gemm(model: onnx.ModelProto) -> None:
    put(model, "dw4", (array(model, "dw") * F32(0.5)).reshape(6, 6, 1, 1))
    put(model, "db2", array(model, "db") * F32(2))
    written("f d", "d4 = Conv(g, dw4, db2) d = Flatten(d4)")(model)


RIGHT: dict[str, dict[str, Edit]] = {
    "image": {
        "BatchNormalization folded": _bn_folded,
        "Max for Relu": written("a1", "a1 = Max(n1, nought)", nought=F32(0)),
        "Clip for Relu": written("a1", "a1 = Clip(n1, nought)", nought=F32(0)),
        "pads before": both(
            attribute("c1", pads=[0, 0, 0, 0]),
            written("c1", "xp = Pad(x, around) c1 = Conv(xp, c1w, c1b)", around=np.array([0, 0, 1, 1, 0, 0, 1, 1])),
        ),
        "Where for LeakyRelu": written(
            "a2", "neg = Less(c2, nought) lk = Mul(c2, tenth) a2 = Where(neg, lk, c2)", nought=F32(0), tenth=F32(0.1)
        ),
        "PRelu for LeakyRelu": written("a2", "a2 = PRelu(c2, tenth)", tenth=np.full((1, 1, 1), 0.1, F32)),
        "bias added": written("c1", "c0 = Conv<pads = [1, 1, 1, 1]>(x, c1w) c1 = Add(c0, c1b4)"),
        "mean for the pool": written("g", "g = ReduceMean<axes = [2, 3], keepdims = 1>(p2)"),
        "Conv for Gemm": _conv_for_gemm,
        "Softmax written out": written(
            "y",
            "top = ReduceMax<axes = [1], keepdims = 1>(d) low = Sub(d, top) ex = Exp(low) "
            "one_ = Constant<value_ints = [1]>() total = ReduceSum<keepdims = 1>(ex, one_) y = Div(ex, total)",
        ),
        "Softmax without the maximum": written(
            "y", "ex = Exp(d) one_ = Constant<value_ints = [1]>() total = ReduceSum<keepdims = 1>(ex, one_) "
            "y = Div(ex, total)",
        ),
        "defaults spelled": attribute("c2", auto_pad="NOTSET", kernel_shape=None),
    },
    "attention": {
        "query scaled": _query_scaled,
        "projections merged": _projections_merged,
        "heads transposed twice": written("o1", "tr = Transpose<perm = [0, 2, 1]>(o) ba = Transpose<perm = [0, 2, 1]>"
                                                "(tr) o1 = MatMul(ba, wo)"),
        "transposed product": written("kt s0", "qt = Transpose<perm = [0, 2, 1]>(q) st = MatMul(k, qt) "
                                               "s0 = Transpose<perm = [0, 2, 1]>(st)"),
        "sum the other way": written("s2", "s2 = Add(m2, s1)"),
        "mask first": written("m0 m1", "m0 = Mul(keep, low) m1 = Sub(low, m0)"),
        "norm written out": written(
            "l1",
            "mu = ReduceMean<axes = [-1]>(r1) ce = Sub(r1, mu) sq = Mul(ce, ce) va = ReduceMean<axes = [-1]>(sq) "
            "ve = Add(va, eps) sd = Sqrt(ve) no = Div(ce, sd) ga = Mul(no, gain) l1 = Add(ga, bias)",
            eps=F32(1e-5),
        ),
        "factor for root": written("e0", "e0 = Mul(h1, inverse)", inverse=F32(0.5**0.5)),
        "half first": written("e3 e4", "e3 = Mul(half, e2) e4 = Mul(h1, e3)"),
        "Div for half": written("e4", "e4 = Div(e3, two)", two=F32(2)),
        "associated otherwise": written("o o1", "vo = MatMul(v, wo) o1 = MatMul(p, vo)"),
        "Gelu": both(_converted(20), written("e0 e1 e2 e3 e4", "e4 = Gelu(h1)")),
        "epsilon as the nearest double": attribute("l1", epsilon=9.999999747378752e-06),
    },
    "recurrent": {
        "transposed by reshapes": written("g1", "g1 = Reshape(g, three)", three=np.array([0, -1, 3])),
        "activations spelled": attribute("g", activations=["Sigmoid", "Tanh"]),
        "biases summed": constant("lb", lambda b: np.concatenate([b[:, :12] + b[:, 12:], 0 * b[:, 12:]], axis=1)),
        "Sigmoid for Tanh": written("t", "d2 = Mul(a2, two) s2 = Sigmoid(d2) d3 = Mul(s2, two) t = Sub(d3, one)",
                                    two=F32(2), one=F32(1)),
    },
    "elements": {
        "sum of the negative": written("s", "nw = Neg(w) s = Add(x, nw)"),
        "Reciprocal": written("a", "inv = Reciprocal(w3) a = Mul(s, inv)"),
        "HardSwish written out": written("h", "h0 = HardSigmoid<alpha = 0.16666667, beta = 0.5>(s) h = Mul(s, h0)"),
        "Swish written out": written("sw0 sw", "nx = Neg(x) en = Exp(nx) e1 = Add(en, one) sw = Div(x, e1)"),
        "Pow for a square": written("w2", "w2 = Pow(w, two)", two=F32(2)),
        "Min and Max for Clip": written("k", "k0 = Max(x, least) k = Min(k0, most)"),
        "Pow for Sqrt": written("r", "r = Pow(w3, half)", half=F32(0.5)),
        "factor for Neg": written("n", "n = Mul(q, minus)", minus=F32(-1)),
        "Min of the negatives": written("q", "mn = Neg(m) ln = Neg(lg) q0 = Min(mn, ln) q = Neg(q0)"),
        "HardSigmoid written out": written(
            "hs", "h1 = Mul(w, quarter) h2 = Add(h1, half) hs = Clip(h2, nought, one)",
            quarter=F32(0.25), half=F32(0.5), nought=F32(0),
        ),
    },
    "shapes": {
        "Gather for Slice": written("head", "head = Gather<axis = 1>(x, firsts)", firsts=np.array([0, 1])),
        "fill of an int": both(written("b", "b = Pad(x, pads, quarter)", quarter=F32(0.25))),
        "sum over the count": written(
            "c", "two_ = Constant<value_ints = [2]>() t_ = ReduceSum<keepdims = 1>(sq, two_) c = Div(t_, six)",
            six=F32(6),
        ),
        "factor of the sum": written(
            "c", "two_ = Constant<value_ints = [2]>() t_ = ReduceSum<keepdims = 1>(sq, two_) c = Mul(t_, sixth)",
            sixth=F32(1 / 6),
        ),
        "ReduceSumSquare": written("sq c", "c0 = ReduceSumSquare<axes = [2]>(x) c = Div(c0, six)", six=F32(6)),
        "Slice for Split": written(
            "first second",
            "two_ = Constant<value_ints = [2]>() first = Slice(x, zero, two, two_) second = Slice(x, two, six, two_)",
            six=np.array([6]),
        ),
        "Gather on the other axis": written("t ga bk", "bk = Gather<axis = 2>(cs, order)"),
        "Less with swapped operands": written("pos", "pos = Less(limit, x)"),
        "branches swapped with Not": written("e", "np = Not(pos) e = Where(np, x, bk)"),
        "product with a triangle": written("cs", "cs = MatMul(sw, upper)", upper=np.triu(np.ones((6, 6), F32))),
    },
    "norms": {
        "Mul for Pow": written("d2", "d2 = Mul(dx, dx)"),
        "Reciprocal of the root": written("n", "inv = Reciprocal(sd) n = Mul(dx, inv)"),
        "power of the variance": written("sd n", "inv = Pow(ve, minus) n = Mul(dx, inv)", minus=F32(-0.5)),
        "L2 written out": written(
            "l2", "q_ = Mul(x, x) two_ = Constant<value_ints = [2]>() s_ = ReduceSum<keepdims = 1>(q_, two_) "
            "l2 = Sqrt(s_)",
        ),
        "Log of Softmax": written("c", "c0 = Softmax<axis = 2>(u) c = Log(c0)"),
        "norm written out": written(
            "i",
            "mu = ReduceMean<axes = [2]>(x) ce = Sub(x, mu) cq = Mul(ce, ce) va = ReduceMean<axes = [2]>(cq) "
            "ev = Add(va, eps) ds = Sqrt(ev) no = Div(ce, ds) ga = Mul(no, scale_) i = Add(ga, shift_)",
        ),
        "log of sum of exponentials": written(
            "d", "top = ReduceMax<axes = [2]>(x) lo = Sub(x, top) ex = Exp(lo) two_ = Constant<value_ints = [2]>() "
            "s_ = ReduceSum<keepdims = 1>(ex, two_) lg = Log(s_) d0 = Add(lg, top) d = Squeeze(d0, two_)",
        ),
    },
}  # fmt: skip


def _with_columns(model: onnx.ModelProto) -> None:
    put(model, "scale_", array(model, "scale").reshape(1, 4, 1))
    put(model, "shift_", array(model, "shift").reshape(1, 4, 1))


RIGHT["norms"]["norm written out"] = both(_with_columns, RIGHT["norms"]["norm written out"])
RIGHT["image"]["bias added"] = both(
    lambda model: put(model, "c1b4", array(model, "c1b").reshape(1, 4, 1, 1)), RIGHT["image"]["bias added"]
)
for _base in RIGHT:
    RIGHT[_base] |= EVERYWHERE
