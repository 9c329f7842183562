"""Which input of a model is which of the subject's: by the user's map, by name, by position, or not at all."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from trueport.core.errors import TrueportError
from trueport.onnxgraph.interface import Interface, InterfaceError, ValueInfo, read_interface


def _interface(*inputs, outputs=(), duplicates=()):
    infos = tuple(i if isinstance(i, ValueInfo) else ValueInfo(i, "", None) for i in inputs)
    return Interface(infos, tuple(outputs), 18, tuple(duplicates))


def _model(body, opset=18):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {body}')


# ---------------------------------------------------------------------- reading


def test_names_types_and_dimensions():
    told = read_interface(
        _model(
            "g (float[N, 3] x, int64 i, bool[2] m) => (float[N, 3] y, float16[?] h) "
            "{ y = Identity(x) h = Cast<to=10>(i) }"
        )
    )
    assert told.inputs == (
        ValueInfo("x", "float32", ("N", 3)),
        ValueInfo("i", "int64", ()),
        ValueInfo("m", "bool", (2,)),
    )
    assert [(o.name, o.dtype) for o in told.outputs] == [("y", "float32"), ("h", "float16")]
    assert (told.opset, told.duplicates) == (18, ())


def test_initializers_are_no_inputs():
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("x", "w")]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    told = read_interface(helper.make_model(helper.make_graph([node], "g", infos, [out], [weight])))
    assert [i.name for i in told.inputs] == ["x"]


def test_nothing_declared_is_nothing_known():
    model = _model("g (float[2] x) => (float[2] y) { y = Identity(x) }")
    model.graph.output[0].type.Clear()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    told = read_interface(model)
    assert told.inputs[0].dims is None
    assert told.outputs[0] == ValueInfo("y", "", None)


def test_a_size_of_zero_is_a_size_and_an_empty_name_is_nothing():
    model = _model("g (float[2, 3, 4] x) => (float[2] y) { y = Identity(x) }")
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[0].dim_value = 0
    dims[1].dim_param = ""
    dims[2].Clear()
    assert read_interface(model).inputs[0].dims == (0, None, None)


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_opset_of_the_default_domain_under_both_names(domain):
    model = _model("g (float[2] x) => (float[2] y) { y = Identity(x) }")
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("com.microsoft", 1), helper.make_opsetid(domain, 15)])
    assert read_interface(model).opset == 15


def test_no_default_domain_is_opset_zero():
    model = _model("g (float[2] x) => (float[2] y) { y = Identity(x) }")
    del model.opset_import[:]
    assert read_interface(model).opset == 0


DUPLICATES = {
    "two nodes": ("y = Relu(x) y = Abs(x)", ("y",)),
    "node and input": ("x = Relu(x) y = Abs(x)", ("x",)),
    "three nodes": ("y = Relu(x) y = Abs(x) y = Neg(x)", ("y",)),
    "two names": ("a = Relu(x) a = Abs(x) y = Relu(a) y = Abs(a)", ("a", "y")),
    "none": ("a = Relu(x) y = Abs(a)", ()),
}


@pytest.mark.parametrize("case", DUPLICATES)
def test_names_defined_twice(case):
    body, names = DUPLICATES[case]
    model = _model("g (float[2] x) => (float[2] y) { y = Identity(x) }")
    del model.graph.node[:]
    for text in body.replace(") ", ");").split(";"):
        output, rest = text.split(" = ")
        op_type, argument = rest.rstrip(")").split("(")
        model.graph.node.append(helper.make_node(op_type, [argument], [output]))
    assert read_interface(model).duplicates == names


def test_optional_outputs_without_a_name_are_no_duplicates():
    model = _model("g (float[1, 1, 4] x) => (float[1, 1, 4] y) { y = Identity(x) }")
    for _ in range(2):
        model.graph.node.append(helper.make_node("Dropout", ["x"], ["", ""]))
    assert read_interface(model).duplicates == ()


# ---------------------------------------------------------------------- pairing


@pytest.mark.parametrize(
    ("inputs", "leaves", "name_map", "pairs"),
    [
        ("a b", "a b", {}, {"a": 0, "b": 1}),
        ("b a", "a b", {}, {"b": 1, "a": 0}),
        ("u v", "a b", {}, {"u": 0, "v": 1}),
        ("u b", "a b", {}, {"u": 0, "b": 1}),
        ("b u", "a b", {}, {"b": 1, "u": 0}),
        ("u", "a b", {}, {"u": None}),
        ("u v w", "a b", {}, {"u": None, "v": None, "w": None}),
        ("a u", "a b c", {}, {"a": 0, "u": None}),
        ("a", "a b", {}, {"a": 0}),
        ("u v", "a b", {"u": "b"}, {"u": 1, "v": 0}),
        ("u v", "a b", {"u": "b", "v": "a"}, {"u": 1, "v": 0}),
        ("a b", "a b", {"a": "b", "b": "a"}, {"a": 1, "b": 0}),
        ("", "a", {}, {}),
        ("", "", {}, {}),
    ],
)
def test_pairs(inputs, leaves, name_map, pairs):
    assert _interface(*inputs.split()).pair(leaves.split(), name_map) == pairs


def test_one_leaf_is_never_fed_twice_unless_the_user_says_so():
    pairs = _interface("a", "u").pair(["a", "b"], {"u": "a"})
    assert pairs == {"a": 0, "u": 0}


def test_names_are_compared_as_a_whole():
    assert _interface("x", "x_1").pair(["x_1", "x"], {}) == {"x": 1, "x_1": 0}
    assert _interface("xx").pair(["x", "y"], {}) == {"xx": None}


# ---------------------------------------------------------------------- feeding

X = np.ones((2, 3), np.float32)


def test_feeds_go_by_name():
    told = _interface("a", "b").feeds({"a": 1, "b": 0}, [X, X + 1])
    assert np.array_equal(told["a"], X + 1)
    assert np.array_equal(told["b"], X)


@pytest.mark.parametrize("dims", [(2, 3), ("N", 3), (None, None), ("N", "N"), None])
def test_sizes_that_fit(dims):
    assert list(_interface(ValueInfo("x", "float32", dims)).feeds({"x": 0}, [X])) == ["x"]


@pytest.mark.parametrize("dims", [(2, 4), (3,), (2, 3, 1), (), ("N", 2)])
def test_sizes_that_do_not_fit(dims):
    with pytest.raises(InterfaceError, match=r"input 'x': the model declares \[.*\], got \[2,3\]"):
        _interface(ValueInfo("x", "float32", dims)).feeds({"x": 0}, [X])


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "bool"])
def test_another_type_is_not_converted(dtype):
    with pytest.raises(InterfaceError, match=f"declares {dtype}, the subject takes float32"):
        _interface(ValueInfo("x", dtype, None)).feeds({"x": 0}, [X])


def test_an_input_without_counterpart():
    with pytest.raises(InterfaceError, match="'u' of the model has no counterpart"):
        _interface("u").feeds({"u": None}, [X])


def test_a_name_defined_twice_is_not_run():
    with pytest.raises(InterfaceError, match="defines y more than once"):
        _interface("x", duplicates=("y",)).feeds({"x": 0}, [X])


def test_it_is_an_error_of_ours():
    assert issubclass(InterfaceError, TrueportError)


# ---------------------------------------------------------------------- more than tensors


def _overridable():
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("x", "w")]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", infos, [out], [weight])
    return read_interface(helper.make_model(graph))


def test_an_initializer_that_is_an_input_is_fed_only_by_its_own_name():
    told = _overridable()
    assert [v.name for v in told.optional] == ["w"]
    x, w = np.zeros(3, np.float32), np.ones(3, np.float32)
    assert told.pair(["x", "w"], {}) == {"x": 0, "w": 1}
    assert list(told.feeds({"x": 0, "w": 1}, [x, w])) == ["x", "w"]
    assert told.pair(["x"], {}) == {"x": 0}
    assert list(told.feeds({"x": 0}, [x])) == ["x"]
    assert told.pair(["a"], {}) == {"x": 0}


def test_sequences_and_optionals_are_told_apart():
    told = read_interface(
        _model(
            "g (seq(float[N]) s, optional(float[2]) o, optional(seq(int64[1])) b, float[2] x) => (float[2] y) "
            "{ y = Relu(x) }"
        )
    )
    assert [str(v.form) for v in told.inputs] == ["sequence", "optional", "optional sequence", "tensor"]
    assert told.inputs[0].element == ValueInfo("s", "float32", ("N",))
    pairs = told.pair(["s.0", "s.1", "x"], {})
    assert pairs == {"x": 2, "s.0": 0, "s.1": 1}
    feeds = told.feeds(pairs, [X[0, :2]] * 3)
    assert (len(feeds["s"]), feeds["o"], feeds["b"]) == (2, None, None)


def test_an_empty_sequence():
    told = read_interface(_model("g (seq(float[N]) s) => (seq(float[N]) y) { y = Identity(s) }"))
    assert told.feeds(told.pair([], {}), []) == {"s": []}
