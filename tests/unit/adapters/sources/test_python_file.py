"""Every form of `file.py:NAME`, and every way in which it can be wrong."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from trueport.adapters.sources import load_subject
from trueport.core.errors import SourceError, UsageError

NET = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)
        def forward(self, x, scale=None):
            return self.layer(x)
    """


def test_module_instance_is_recognized_before_anything_is_called(write):
    path = write(
        """
        class Bomb(nn.Module):
            def forward(self, x):
                raise AssertionError("called")
        model = Bomb()
        inputs = torch.ones(2)
        """
    )
    subject = load_subject(path)
    assert type(subject.model).__name__ == "Bomb"
    assert subject.origin == path
    assert subject.name == "net:model"
    assert subject.framework == "torch"


@pytest.mark.parametrize(
    "definition",
    [
        "model = Net()\ninputs = (torch.ones(1, 3),)",
        "model = Net\ninputs = (torch.ones(1, 3),)",
        "def model(): return Net()\nmodel.inputs = torch.ones(1, 3)",
        "def model(): return Net(), (torch.ones(1, 3),)",
        "def model(): return Net(), (), {'x': torch.ones(1, 3)}",
        "model = lambda: (Net(), (torch.ones(1, 3),))",
        "model = Net()\nmodel.inputs = {'x': torch.ones(1, 3)}",
        "Net.inputs = torch.ones(1, 3)\nmodel = Net",
    ],
)
def test_every_accepted_kind(write, definition):
    subject = load_subject(write(NET.replace("\n    ", "\n") + definition + "\n"))
    assert type(subject.model).__name__ == "Net"
    example = subject.examples[0]
    assert torch.equal([*example.args, *example.kwargs.values()][0], torch.ones(1, 3))
    assert len(subject.sha256) == 64


def test_name_is_what_follows_the_colon(write):
    path = write("a = nn.Identity()\nb = nn.Tanh()\ninputs = torch.ones(1)")
    assert isinstance(load_subject(path + ":b").model, nn.Tanh)


def test_several_input_sets(write):
    path = write("model = nn.Tanh()\ninputs = [torch.ones(1), (torch.zeros(2),), {'input': torch.ones(3)}]")
    examples = load_subject(path).examples
    assert [e.label for e in examples] == ["example", "inputs[1]", "inputs[2]"]
    assert [len(e.args) for e in examples] == [1, 1, 0]


def test_attributes_of_the_name_win_over_those_of_the_file(write):
    subject = load_subject(
        write(
            """
            inputs = torch.zeros(1)
            dynamic_shapes = {"input": {0: "file"}}
            export_options = {"opset_version": 17}
            def model(): return nn.Tanh()
            model.inputs = torch.ones(2)
            model.dynamic_shapes = {"input": {0: "own"}}
            """
        )
    )
    assert subject.examples[0].args[0].shape == (2,)
    assert subject.dynamic_shapes == {"input": {0: "own"}}
    assert subject.export_options == {"opset_version": 17}


def test_a_layer_or_method_called_inputs_is_a_part_of_the_model(write):
    path = write(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inputs = nn.Linear(3, 2)
            def dynamic_shapes(self):
                return 1
            def forward(self, x):
                return self.inputs(x)
        model = Net()
        """
    )
    with pytest.raises(UsageError, match="without example inputs"):
        load_subject(path)
    Path(path).write_text(Path(path).read_text() + "\ninputs = torch.ones(1, 3)\n")
    subject = load_subject(path)
    assert subject.examples[0].args[0].shape == (1, 3)
    assert subject.dynamic_shapes is None


def test_what_a_model_keeps_under_our_names_is_not_taken_for_inputs(write):
    path = write("model = nn.Tanh()\nmodel.inputs = ['width', 'height']\ninputs = torch.ones(2)")
    assert load_subject(path).examples[0].args[0].shape == (2,)


def test_example_that_comes_with_the_module_is_first_of_all(write):
    path = write(
        """
        def model(): return nn.Tanh(), (torch.ones(1),)
        model.inputs = [torch.ones(2), torch.ones(3)]
        inputs = torch.ones(4)
        """
    )
    examples = load_subject(path).examples
    assert [len(e.args[0]) for e in examples] == [1, 2, 3]
    assert [e.label for e in examples] == ["example", "inputs[0]", "inputs[1]"]


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_mode_is_left_alone(write, mode):
    subject = load_subject(write(f"model = nn.Dropout().{mode}()\ninputs = torch.ones(1)"))
    assert subject.model.training is (mode == "train")


def test_file_not_found_names_near_ones(write, tmp_path):
    write("", "network.py")
    with pytest.raises(UsageError, match=r"does not exist.*network\.py"):
        load_subject(str(tmp_path / "netwrk.py"))
    with pytest.raises(UsageError, match="nor does its folder"):
        load_subject(str(tmp_path / "no" / "net.py"))


def test_missing_name_lists_what_there_is(write):
    path = write("my_model = nn.Tanh()")
    with pytest.raises(UsageError, match=r"no name 'my_modle'; did you mean 'my_model'\? It defines:"):
        load_subject(path + ":my_modle")
    with pytest.raises(UsageError, match="expected a Python name"):
        load_subject(path + ":a-b")


def test_syntax_error_has_the_line(write):
    with pytest.raises(SourceError, match=r"no valid Python: .* at line 4: x = = 1"):
        load_subject(write("y = 1\nx = = 1\n"))


def test_exception_at_import_has_the_users_line(write):
    path = write("def broken():\n    return {}['key']\nbroken()\n")
    with pytest.raises(SourceError, match=r"raised KeyError: 'key', at line 4: return \{\}\['key'\]"):
        load_subject(path)
    assert not [name for name in sys.modules if name.startswith("_trueport_source_") and Path(path).stem in name]


def test_exception_in_the_factory_has_the_users_line(write):
    with pytest.raises(SourceError, match=r"calling model of .* raised ValueError: no, at line 4"):
        load_subject(write("def model():\n    raise ValueError('no')\n"))


@pytest.mark.parametrize("text", ["import sys\nsys.exit(3)", "def model():\n    raise SystemExit(3)"])
def test_sys_exit_is_an_error_of_the_source(write, text):
    with pytest.raises(SourceError, match="ended the process \\(SystemExit with 3\\)"):
        load_subject(write(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 3", "expected 'net.py:model' to be an nn.Module instance, a Keras.*got 3"),
        ("model = torch.ones(2, 3)", r"got float32\[2, 3\]"),
        ("def model(): return 'text'", "to return a model.*got 'text'"),
        ("def model(): return nn.Tanh(), torch.ones(2)", r"to be a tuple, got float32\[2\]; write \(x,\)"),
        ("def model(): return nn.Tanh(), (), [1]", r"to be a dict by parameter name, got \[1\]"),
        ("class model(nn.Module):\n    def __init__(self, n): pass", r"called without arguments, but takes \(n\)"),
        ("model = nn.Tanh()", "three ways.*--inputs.*--input-shape"),
        ("model = nn.Tanh()\ninputs = 'x'", "expected `inputs` of 'net.py:model' to be a tuple.*got 'x'"),
        ("model = nn.Tanh()\ninputs = []", "at least one input set, got an empty list"),
        ("model = nn.Tanh()\ninputs = [torch.ones(1), 3]", r"`inputs` of 'net.py:model'\[1\] to be"),
        ("model = nn.Tanh()\ninputs = {1: torch.ones(1)}", "keys of .* to be parameter names, got 1"),
        ("model = nn.Tanh()\ndef inputs(): return torch.ones(1)", "call it in the file"),
        ("model = nn.Tanh()\ninputs = (torch.ones(1), 2)", r"too many positional arguments of forward\(input\)"),
        ("model = nn.Bilinear(1, 1, 1)\ninputs = [torch.ones(1)]", "missing a required argument.*a list several"),
        ("model = nn.Tanh()\ninputs = torch.ones(1)\nexport_options = 3", "`export_options` .* to be a dict"),
    ],
)  # fmt: skip
def test_wrong_sources_are_told_what_was_expected(write, text, message):
    with pytest.raises(UsageError, match=message):
        load_subject(write(text))


def test_messages_never_dump_tensors(write):
    with pytest.raises(UsageError) as caught:
        load_subject(write("def model(): return nn.Tanh(), torch.full((1000,), 0.123)"))
    assert "0.123" not in str(caught.value)


def test_global_state_is_the_same_afterwards(write, tmp_path):
    write("width = 3", "layers.py")
    path = write(
        """
        import random, numpy, layers
        torch.manual_seed(1); random.seed(1); numpy.random.seed(1)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.set_default_device("meta")
        torch.set_num_threads(2)
        model = nn.Linear(3, layers.width)
        inputs = torch.ones(1, 3)
        """
    )
    before = (list(sys.path), random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state())
    load_subject(path)
    after = (list(sys.path), random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state())
    assert before[:3] == after[:3]
    assert torch.equal(before[3], after[3])
    assert torch.get_default_dtype() is torch.float32
    assert torch.is_grad_enabled()
    assert torch.ones(1).device.type == "cpu"
    assert torch.get_num_threads() == 1


def test_random_weights_depend_on_the_seed_only(write):
    path = write("model = nn.Linear(3, 3)\ninputs = torch.randn(1, 3)")
    first, other = load_subject(path, seed=1), load_subject(path, seed=2)
    torch.rand(3)
    again = load_subject(path, seed=1)
    assert torch.equal(first.model.weight, again.model.weight)
    assert torch.equal(first.examples[0].args[0], again.examples[0].args[0])
    assert not torch.equal(first.model.weight, other.model.weight)


def test_modules_beside_a_file_are_its_own(tmp_path):
    for folder, width in (("a", 2), ("b", 5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "beside.py").write_text(f"width = {width}\n")
        (tmp_path / folder / "net.py").write_text(
            "import torch, beside\nmodel = torch.nn.Linear(3, beside.width)\ninputs = torch.ones(1, 3)\n"
        )
    widths = [load_subject(str(tmp_path / folder / "net.py")).model.out_features for folder in ("a", "b", "a")]
    assert widths == [2, 5, 2]


def test_a_rewritten_file_is_read_anew(write, tmp_path):
    path = write("model = nn.Linear(3, 1)\ninputs = torch.ones(1, 3)")
    first = load_subject(path)
    second = load_subject(write("model = nn.Linear(3, 2)\ninputs = torch.ones(1, 3)"))
    assert (first.model.out_features, second.model.out_features) == (1, 2)
    assert first.sha256 != second.sha256
    assert not (tmp_path / "__pycache__").exists()


def test_unknown_forms_are_listed():
    with pytest.raises(UsageError, match=r"file.py:NAME, model.pt2.*got 'model.tflite'"):
        load_subject("model.tflite")
    with pytest.raises(UsageError, match="did you mean zoo:hf/bert"):
        load_subject("hf/bert")
