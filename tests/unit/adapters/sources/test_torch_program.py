"""`model.pt2`, harmless, damaged, and such as would run code."""

from __future__ import annotations

import io
import json
import pickle
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

from trueport.adapters.sources import load_subject
from trueport.core.errors import UsageError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, pair, *, scale):
        return self.layer(x) * scale["factor"] + pair[0] - pair[1].sum()


@pytest.fixture(scope="module")
def program():
    batch = Dim("batch", min=2, max=32)
    args = (torch.ones(4, 4), (torch.ones(4, 4), torch.ones(3)))
    shapes = {"x": {0: 2 * batch}, "pair": ({0: 2 * batch}, None), "scale": {"factor": None}}
    return torch.export.export(Net().eval(), args, {"scale": {"factor": torch.ones(1)}}, dynamic_shapes=shapes)


@pytest.fixture
def saved(program, tmp_path) -> Path:
    torch.export.save(program, tmp_path / "net.pt2")
    return tmp_path / "net.pt2"


def rewritten(path: Path, record: str, change) -> Path:
    """Copies the archive with one record changed; a record that is not there is added."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    root = next(iter(content)).split("/")[0]
    content[f"{root}/{record}"] = change(content.get(f"{root}/{record}", b""))
    other = path.with_name("other.pt2")
    with zipfile.ZipFile(other, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return other


def in_program(path: Path, change) -> Path:
    def edit(data: bytes) -> bytes:
        program = json.loads(data)
        change(program)
        return json.dumps(program).encode()

    return rewritten(path, "models/model.json", edit)


def test_program_and_its_example(saved):
    subject = load_subject(str(saved))
    assert subject.program is not None
    example = subject.examples[0]
    assert [tuple(t.shape) for t in example.args[1]] == [(4, 4), (3,)]
    assert list(example.kwargs) == ["scale"]
    assert subject.model(*example.args, **example.kwargs).shape == (4, 4)


def test_dynamic_dimensions_come_back(saved):
    subject = load_subject(str(saved))
    shapes = subject.dynamic_shapes
    assert list(shapes) == ["x", "pair", "scale"]
    assert shapes["scale"] == {"factor": None}
    x, pair = shapes["x"][0], shapes["pair"][0][0]
    assert (x.min, x.max) == (4, 64)
    assert x.root is pair.root
    again = torch.export.export(
        subject.model, subject.examples[0].args, dict(subject.examples[0].kwargs), dynamic_shapes=shapes
    )
    assert again.graph_signature.user_inputs


def test_open_range_and_fixed_sizes(tmp_path):
    shapes = ({0: Dim("rows", min=1)}, None)
    program = torch.export.export(nn.Bilinear(2, 2, 1), (torch.ones(3, 2), torch.ones(3, 2)), dynamic_shapes=(
        {0: (rows := Dim("rows"))}, {0: rows}))  # fmt: skip
    torch.export.save(program, tmp_path / "open.pt2")
    loaded = load_subject(str(tmp_path / "open.pt2")).dynamic_shapes
    assert isinstance(loaded, tuple)
    assert loaded[0][0] is loaded[1][0]
    assert loaded[0][0].max > 10**6
    del shapes
    torch.export.save(torch.export.export(nn.Tanh(), (torch.ones(3),)), tmp_path / "fixed.pt2")
    assert load_subject(str(tmp_path / "fixed.pt2")).dynamic_shapes is None


def test_program_without_example_needs_inputs(tmp_path):
    program = torch.export.export(nn.Tanh(), (torch.ones(3),))
    program.example_inputs = None
    path = str(tmp_path / "bare.pt2")
    torch.export.save(program, path)
    with pytest.raises(UsageError, match="without example inputs"):
        load_subject(path)
    np.savez(tmp_path / "in.npz", input=np.ones(3, np.float32))
    assert load_subject(path, inputs=str(tmp_path / "in.npz")).examples[0].args[0].shape == (3,)


@pytest.mark.parametrize("kept", [0.05, 0.5, 0.9, 0.99])
def test_truncated_archive(saved, kept):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(UsageError, match="truncated"):
        load_subject(str(saved))


def test_damaged_record(saved):
    data = bytearray(saved.read_bytes())
    at = data.find(b"torch.ops.aten.linear")
    data[at] = ord("T")
    saved.write_bytes(data)
    with pytest.raises(UsageError, match=r"damaged at its record .*model\.json"):
        load_subject(str(saved))


@pytest.mark.parametrize("content", [b"", b"text", pickle.dumps({})])
def test_other_files_with_this_suffix(tmp_path, content):
    (tmp_path / "x.pt2").write_bytes(content)
    with pytest.raises(UsageError, match="no complete zip archive"):
        load_subject(str(tmp_path / "x.pt2"))


def test_zip_of_something_else(tmp_path):
    torch.save({"w": torch.ones(1)}, tmp_path / "x.pt2")
    with pytest.raises(UsageError, match=r"has no record models/\*\.json"):
        load_subject(str(tmp_path / "x.pt2"))


def test_missing_record_is_told(saved):
    with zipfile.ZipFile(saved) as archive:
        content = {n: archive.read(n) for n in archive.namelist() if "weights_config" not in n}
    with zipfile.ZipFile(saved, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    with pytest.raises(UsageError, match=r"cannot be loaded by torch .*weights_config"):
        load_subject(str(saved))


class Trap:
    """Unpickling it would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_pickled_sample_inputs_are_not_opened(saved, tmp_path):
    sprung = tmp_path / "sprung"
    buffer = io.BytesIO()
    torch.save(((torch.ones(1), Trap(sprung)), {}), buffer)
    path = rewritten(saved, "data/sample_inputs/model.pt", lambda _: buffer.getvalue())
    with pytest.raises(UsageError, match=r"could run code: record data/sample_inputs.*--trust-pickle"):
        load_subject(str(path))
    assert not sprung.exists()


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("data/constants/opaque_obj_0", "pickled object"),
        ("data/constants/custom_obj_0", "pickled object"),
        ("data/weights/model.pt", "pickle of an old format"),
        ("data/aotinductor/model/x.so", "compiled code"),
    ],
)
def test_records_that_would_be_run(saved, record, reason):
    with pytest.raises(UsageError, match=reason):
        load_subject(str(rewritten(saved, record, lambda _: b"x")))


def test_pickled_weight(saved):
    def change(data: bytes) -> bytes:
        config = json.loads(data)
        next(iter(config["config"].values()))["use_pickle"] = True
        return json.dumps(config).encode()

    with pytest.raises(UsageError, match=r"tensor 'layer\.weight' .*stored as a pickle"):
        load_subject(str(rewritten(saved, "data/weights/model_weights_config.json", change)))


def set_guard(text):
    return lambda program: program["guards_code"].append(text)


def set_target(text):
    return lambda program: program["graph_module"]["graph"]["nodes"][0].update(target=text)


def set_expression(text):
    def change(program):
        sizes = program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"]
        sizes[0]["as_expr"]["expr_str"] = text

    return change


def set_name(program):
    program["graph_module"]["graph"]["inputs"][0]["as_tensor"]["name"] = "x=print('run')"


def set_tree(program):
    entry = program["graph_module"]["module_call_graph"][0]["signature"]
    entry["in_spec"] = entry["in_spec"].replace("builtins.tuple", "collections.defaultdict", 1)


@pytest.mark.parametrize(
    "change",
    [
        set_guard("__import__('os').system('true')"),
        set_guard("(lambda: 1)() == 1"),
        set_guard("L['x'].size()[0] == 1, exec"),
        set_guard("L['x'].__class__ == 1"),
        set_guard("no python"),
        set_target("torch.ops.load_library"),
        set_target("torch.serialization.os.system"),
        set_target("torch.ops.aten.linear.__class__"),
        set_target("torch.ops.aten.__class__.mro"),
        set_target("torch.ops.aten.from_file.default"),
        set_target("torch.ops.nowhere.linear.default"),
        set_target("_operator.attrgetter"),
        set_target("#namespace:name"),
        set_expression("__import__('os').system('true')"),
        set_expression("sympify('1')"),
        set_expression("Symbol('x').__class__"),
        set_name,
        set_tree,
    ],
)
def test_text_that_would_be_run_is_refused(saved, change):
    with pytest.raises(UsageError, match="could run code"):
        load_subject(str(in_program(saved, change)))


class Ordinary(nn.Module):
    """Operators, structures and texts as real programs have them."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        y, state = self.layer(x)
        y = torch.cond(x.shape[0] > 5, lambda a: a * 2, lambda a: a + 1, (y,))
        masked = (x > 0) & (x < 1) | (x > 2)
        resized = nn.functional.interpolate(x[:, None], scale_factor=1.5, mode="bilinear")
        return {"y": y, "state": list(state)}, torch.einsum("bij,bkj->bik", x, y), masked, resized, x.nonzero()


@pytest.mark.filterwarnings("ignore:The tensor attributes")  # what torch.export says about every LSTM
def test_real_programs_are_not_refused(tmp_path):
    program = torch.export.export(Ordinary().eval(), (torch.randn(3, 5, 4),), dynamic_shapes=({0: Dim("b")},))
    torch.export.save(program, tmp_path / "ordinary.pt2")
    assert load_subject(str(tmp_path / "ordinary.pt2")).dynamic_shapes[0][0].max > 10**6


def test_ordinary_programs_are_not_refused(saved):
    # The guard of a real program has this form; the edit shows that rewriting alone does no harm.
    assert load_subject(str(in_program(saved, set_guard("L['x'].size()[0] >= 2"))))


def test_global_state_is_the_same_afterwards(saved):
    before = random.getstate(), torch.random.get_rng_state()
    load_subject(str(saved))
    assert before[0] == random.getstate()
    assert torch.equal(before[1], torch.random.get_rng_state())
