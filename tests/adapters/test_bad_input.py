"""What must not go wrong when what is given is wrong: a clear line, the right exit code, nothing left behind."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PRELUDE = "import torch\nfrom torch import nn\n"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_leftovers")]


def trueport(*arguments: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trueport", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)


def model_file(folder: Path, body: str, inputs: str = "inputs = (torch.ones(2, 3),)") -> str:
    path = folder / "subject.py"
    path.write_text(f"{PRELUDE}{body}\n{inputs}\n")
    return f"{path}:model"


def module(forward: str) -> str:
    return f"class Model(nn.Module):\n    def forward(self, x):\n        {forward}\nmodel = Model().eval()"


FINE = module("return x + 1")


def test_a_missing_file(tmp_path: Path) -> None:
    done = trueport(str(tmp_path / "absent.py"))
    assert done.returncode == 2
    assert "absent.py" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_that_is_not_there_suggests_one(tmp_path: Path) -> None:
    done = trueport(model_file(tmp_path, FINE).replace(":model", ":modle"))
    assert done.returncode == 2
    assert "model" in done.stderr


def test_a_module_without_inputs_says_how_to_give_them(tmp_path: Path) -> None:
    done = trueport(model_file(tmp_path, FINE, ""))
    assert done.returncode == 2
    assert "inputs" in done.stderr


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"y": np.ones((2, 3), np.float32)}, "x"),
        ({"x": np.ones((2, 3), object)}, "object"),
    ],
)
def test_inputs_that_do_not_fit(tmp_path: Path, arrays: dict[str, np.ndarray], word: str) -> None:
    np.savez(tmp_path / "inputs.npz", **arrays)
    done = trueport(model_file(tmp_path, FINE), "--inputs", str(tmp_path / "inputs.npz"))
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_an_input_of_a_shape_that_the_source_refuses(tmp_path: Path) -> None:
    body = "model = nn.Linear(3, 2).eval()"
    done = trueport(model_file(tmp_path, body, "inputs = (torch.ones(2, 4),)"))
    assert done.returncode == 2
    assert "example" in done.stderr


def test_a_truncated_program(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(b"PK\x03\x04 cut off")
    done = trueport(str(path))
    assert done.returncode == 2
    assert "model.pt2" in done.stderr


def test_a_plain_pickle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"\x80\x02.")
    done = trueport(str(path))
    assert done.returncode == 2
    assert "--trust-pickle" in done.stderr


@pytest.mark.parametrize("word", ["sys.exit(0)", "import os; os._exit(0)"])
def test_a_source_that_ends_the_process_is_no_success(tmp_path: Path, word: str) -> None:
    done = trueport(model_file(tmp_path, "import sys\n" + module(f"{word}; return x")))
    assert done.returncode == 2, done.stderr


def test_a_source_that_prints_megabytes_prints_nothing_here(tmp_path: Path) -> None:
    done = trueport(model_file(tmp_path, module("print('x' * 10_000_000); return x + 1")), "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["exit_code"] == 0
    assert len(done.stderr) < 10_000


def test_a_source_that_never_returns(tmp_path: Path) -> None:
    done = trueport(model_file(tmp_path, "import time\n" + module("time.sleep(1e6); return x")), "--timeout", "20")
    assert done.returncode == 2
    assert "example" in done.stderr


def test_a_source_that_takes_all_memory(tmp_path: Path) -> None:
    body = module("return x + torch.ones(25_000_000_000).sum()")
    done = trueport(model_file(tmp_path, body), "--memory-mb", "3000")
    assert done.returncode == 2
    assert "memory" in done.stderr.lower()


def test_a_converter_that_is_not_there(tmp_path: Path) -> None:
    done = trueport(model_file(tmp_path, FINE), "--converter", "torch-dynmo")
    assert done.returncode == 2
    assert "torch-dynamo" in done.stderr


def test_a_candidate_that_is_no_onnx_file(tmp_path: Path) -> None:
    (tmp_path / "candidate.onnx").write_bytes(b"\x08\x07 no model")
    done = trueport(model_file(tmp_path, FINE), "--candidate", str(tmp_path / "candidate.onnx"))
    assert done.returncode == 2
    assert "candidate.onnx" in done.stderr
