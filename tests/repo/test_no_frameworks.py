"""Everything but adapters can be imported where no framework can: in a bare interpreter that refuses them by name."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

FRAMEWORKS = ("torch", "tensorflow", "jax", "onnxruntime", "transformers", "onnxscript")
READS_ONNX = (
    "trueport.onnxgraph.",
    "trueport.testing",
    "trueport.api.causes",
    "trueport.api.conclude",
    "trueport.api.findings",
    "trueport.api.locate",
    "trueport.api.metric",
    "trueport.api.observed",
    "trueport.api.save",
    "trueport.api.session",
    "trueport.api.vote",
    "trueport.api.walk",
    "trueport.locate.sequences",
)
"""`onnxgraph` is the code that reads ONNX protos, and these parts of `api` use it and the ONNX adapters. onnx is a
dependency of trueport, not an extra; `import trueport` and `trueport --help` still do without it."""

PROGRAM = """
import importlib, json, pkgutil, sys

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError(f"blocked: {name}")

BLOCKED = set(sys.argv[1].split(","))
assert not BLOCKED & set(sys.modules)
sys.meta_path.insert(0, Refuses())
import trueport

failed = {}
names = [m.name for m in pkgutil.walk_packages(trueport.__path__, "trueport.", onerror=lambda name: None)]
for name in names:
    if name.startswith("trueport.adapters.") or name.endswith("__main__"):
        continue
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed[name] = str(error)
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed[name] = str(error)
loaded = sorted(BLOCKED & {name.split(".")[0] for name in sys.modules})
json.dump({"failed": failed, "loaded": loaded, "count": len(names)}, sys.stdout)
"""


def _import_all(blocked, *more):
    command = [sys.executable, "-c", PROGRAM, ",".join(blocked), *more]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def test_without_frameworks():
    told = _import_all(FRAMEWORKS)
    assert told["failed"] == {}
    assert told["loaded"] == []
    assert told["count"] > 50


def test_without_onnx_either():
    told = _import_all((*FRAMEWORKS, "onnx", "onnx_ir"))
    assert all(name.startswith(READS_ONNX) for name in told["failed"]), told["failed"]
    assert told["loaded"] == []


def test_the_block_works():
    """Adapters do need their tools, so a block that let them through would be none."""
    told = _import_all(
        (*FRAMEWORKS, "onnx"),
        "torch", "onnx", "onnxruntime", "trueport.adapters.converters.torch_dynamo",
        "trueport.adapters.runtimes.onnxruntime", "trueport.adapters.float64.torch.tape",
    )  # fmt: skip
    assert {"torch", "onnx", "onnxruntime"} <= set(told["failed"])
    assert "trueport.adapters.converters.torch_dynamo" in told["failed"]
    assert "trueport.adapters.runtimes.onnxruntime" in told["failed"]
    assert "trueport.adapters.float64.torch.tape" in told["failed"]
    assert all(reason.startswith("blocked: ") for reason in told["failed"].values()), told["failed"]


@pytest.mark.parametrize("module", ["trueport", "trueport.cli", "trueport.api.check"])
def test_what_every_command_imports_loads_no_framework(module):
    program = f"import sys, {module}; print(*sorted({{n.split('.')[0] for n in sys.modules}}))"
    loaded = set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()
    )
    assert not loaded & {*FRAMEWORKS, "onnx", "scipy", "cloudpickle"}
