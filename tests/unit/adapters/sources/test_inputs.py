"""`--inputs` and `--input-shape`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trueport.adapters.sources import load_subject
from trueport.core.errors import UsageError

TWO = """
class Net(nn.Module):
    def forward(self, x, ids, *, mask=None):
        return x * ids
def bare():
    return Net()
def model():
    return Net(), (torch.ones(2, 3), torch.tensor([[1, 7, 4]])), {"mask": torch.tensor([True])}
"""


@pytest.fixture
def net(write):
    return write(TWO)


def npz(tmp_path, **arrays):
    np.savez(tmp_path / "in.npz", **arrays)
    return str(tmp_path / "in.npz")


@pytest.mark.parametrize("names", [("x", "ids", "mask"), ("arg0", "arg1", "2"), ("0", "ids", "arg_2")])
def test_npz_replaces_the_leaves_by_name(net, tmp_path, names):
    arrays = dict(zip(names, (np.zeros((4, 3), np.float32), np.array([[5, 6, 7]]), np.array([False])), strict=True))
    example = load_subject(net, inputs=npz(tmp_path, **arrays)).examples[0]
    assert example.args[0].shape == (4, 3)
    assert example.args[1].tolist() == [[5, 6, 7]]
    assert example.kwargs["mask"].tolist() == [False]


def test_npz_alone_makes_the_call(net, tmp_path):
    path = npz(tmp_path, mask=np.array([True]), ids=np.array([1]), x=np.ones(1, np.float32))
    example = load_subject(net + ":bare", inputs=path).examples[0]
    assert [a.dtype for a in example.args] == [torch.float32, torch.int64]
    assert list(example.kwargs) == ["mask"]


def test_npz_of_foreign_byte_order(write, tmp_path):
    path = write("model = nn.Tanh()")
    example = load_subject(path, inputs=npz(tmp_path, input=np.arange(3, dtype=">f4"))).examples[0]
    assert example.args[0].tolist() == [0.0, 1.0, 2.0]


F4 = np.float32


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((2, 3), F4)}, "gives x, but the model also takes ids, mask"),
        ({"y": np.zeros(1), "ids": np.zeros(1)}, r"'y', which is no input of the model; its inputs are: x, ids, mask"),
        ({"idz": np.zeros(1)}, r"did you mean 'ids'\? Its inputs are"),
        ({"x": np.zeros((2, 3)), "ids": np.array([[1]]), "mask": np.array([True])},
         r"another dtype for 'x': expected float32\[2, 3\] \(sizes may differ\), got float64\[2, 3\]"),
        ({"x": np.zeros(3, F4), "ids": np.array([[1]]), "mask": np.array([True])},
         r"another rank for 'x': expected float32\[2, 3\] .*got float32\[3\]"),
        ({"x": np.zeros((2, 3), F4), "arg0": np.zeros((2, 3), F4)}, "gives an input twice"),
        ({"x": np.array([{}], dtype=object)}, "'x' .*holds Python objects, which are not unpickled"),
        ({"x": np.array(["a"])}, "expected array 'x' .* to hold booleans"),
        ({}, "holds no arrays"),
    ],
)  # fmt: skip
def test_wrong_npz(net, tmp_path, arrays, message):
    with pytest.raises(UsageError, match=message):
        load_subject(net, inputs=npz(tmp_path, **arrays))


def test_npz_without_an_example_names_what_forward_needs(net, tmp_path):
    with pytest.raises(UsageError, match="gives x, but forward also needs ids"):
        load_subject(net + ":bare", inputs=npz(tmp_path, x=np.zeros(1)))


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 but cut off"])
def test_damaged_npz(net, tmp_path, content):
    (tmp_path / "in.npz").write_bytes(content)
    with pytest.raises(UsageError, match=r"numpy\.savez"):
        load_subject(net, inputs=str(tmp_path / "in.npz"))


def test_single_array_file_named_npz(net, tmp_path):
    with (tmp_path / "in.npz").open("wb") as file:
        np.save(file, np.zeros(2))
    with pytest.raises(UsageError, match=r"numpy\.savez"):
        load_subject(net, inputs=str(tmp_path / "in.npz"))


def test_inputs_from_a_python_file(net, write):
    other = write("several = [(torch.ones(1), torch.ones(1)), {'x': torch.ones(2), 'ids': torch.ones(2)}]", "other.py")
    assert len(load_subject(net, inputs=other + ":several").examples) == 2
    with pytest.raises(UsageError, match="no name 'inputs'"):
        load_subject(net, inputs=other)
    with pytest.raises(UsageError, match=r"file\.npz or file\.py:NAME"):
        load_subject(net, inputs="in.csv")
    with pytest.raises(UsageError, match="does not exist"):
        load_subject(net, inputs="nowhere.npz")


def test_shapes_draw_values_of_the_same_kind(net):
    example = load_subject(net, input_shapes={"x": (50, 3), "ids": [50, 3], "mask": [40]}).examples[0]
    x, ids = example.args
    assert x.dtype == torch.float32
    assert 0.7 < float(x.std()) < 1.3
    assert (ids.dtype, int(ids.min()), int(ids.max())) == (torch.int64, 1, 7)
    assert example.kwargs["mask"].dtype == torch.bool
    assert 5 < int(example.kwargs["mask"].sum()) < 35


def test_shapes_alone_make_float32_inputs(net):
    spec = net + ":bare"
    a, b = (load_subject(spec, input_shapes={"x": [2, 3], "ids": [3]}, seed=5).examples[0] for _ in range(2))
    assert [t.dtype for t in a.args] == [torch.float32] * 2
    assert all(torch.equal(s, t) for s, t in zip(a.args, b.args, strict=True))
    c = load_subject(spec, input_shapes={"x": [2, 3], "ids": [3]}, seed=6).examples[0]
    assert not torch.equal(a.args[0], c.args[0])


def test_scalar_shape(write):
    assert load_subject(write("model = nn.Tanh()"), input_shapes={"input": []}).examples[0].args[0].shape == ()


@pytest.mark.parametrize(
    ("name", "shapes", "message"),
    [
        ("model", {"y": [1]}, "names 'y', which is no input of the model; its inputs are: x, ids, mask"),
        ("model", {"x": [-1]}, r"integers >= 0, got \[-1\]"),
        ("model", {"x": [1.5]}, r"integers >= 0, got \[1.5\]"),
        ("bare", {"x": [1]}, "gives x, but forward also needs ids"),
        ("bare", {"z": [1]}, "'z', which is no input"),
    ],
)
def test_wrong_shapes(net, name, shapes, message):
    with pytest.raises(UsageError, match=message):
        load_subject(f"{net}:{name}", input_shapes=shapes)
