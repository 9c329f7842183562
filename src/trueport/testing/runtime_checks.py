"""What a runtime must do so that a verdict about what it computes can be trusted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import parser

from trueport.adapters.protocols import Runtime, Session
from trueport.testing.one_operator import MODELS, OneOperator
from trueport.testing.outcomes import require

Make = Callable[[], Runtime]

RELATIVE = {"float64": 1e-6, "float32": 1e-5, "float16": 2e-3}
"""What a right result may be off by: a runtime may compute double precision in single."""
_NOWHERE = '<ir_version: 8, opset_import: ["": 18, "trueport.nowhere": 1]> '
_UNKNOWN = f"{_NOWHERE} g (float[2] x) => (float[2] y) {{ y = trueport.nowhere.Unheard (x) }}"


def runtime_checks(make: Make) -> dict[str, Callable[[], str | None]]:
    """Returns the checks by name; each makes a runtime of its own."""
    checks: dict[str, Callable[[], str | None]] = {"names itself": lambda: _names_itself(make())}
    for model in MODELS:
        checks[f"computes [{model.name}]"] = lambda m=model: _computes(make(), m)  # type: ignore[misc]
    checks["keeps its hands off what it was given"] = lambda: _keeps(make())
    checks["refuses broken files"] = lambda: _refuses(make())
    checks["says which operator it lacks"] = lambda: _lacks(make())
    return checks


def _names_itself(runtime: Runtime) -> None:
    require(isinstance(runtime.name, str) and bool(runtime.name), f"expected a name, got {runtime.name!r}")
    levels = runtime.levels
    right = isinstance(levels, tuple) and bool(levels) and len(set(levels)) == len(levels)
    require(right, f"expected a tuple of different optimization levels, got {levels!r}")
    require(bool(runtime.versions()), "expected the versions of the packages behind it, got none")
    require(all(isinstance(name, str) for name in runtime.budgets), "expected budgets by operator")


def _computes(runtime: Runtime, model: OneOperator) -> str | None:
    with tempfile.TemporaryDirectory(prefix="trueport-suite-") as folder:
        path = _written(model.text, folder)
        for level in (None, *runtime.levels):
            try:
                session = runtime.load(path, level=level)
                outputs = session.run(dict(model.feeds))
            except Exception as error:
                lacks = runtime.lacks_kernel(error)
                if lacks is not None and not model.needed:
                    return f"no kernel: {lacks}"
                raise
            _require_equal(model, outputs, "as users run it" if level is None else f"at level {level}")
    return None


def _require_equal(model: OneOperator, outputs: list[Any], how: str) -> None:
    require(
        len(outputs) == len(model.outputs), f"{how}: expected {len(model.outputs)} outputs, got {len(outputs)} of them"
    )
    for number, (expected, value) in enumerate(zip(model.outputs, outputs, strict=True)):
        require(isinstance(value, np.ndarray), f"{how}: output {number}: expected an array, got {type(value).__name__}")
        came, wanted = f"{value.dtype}{list(value.shape)}", f"{expected.dtype}{list(expected.shape)}"
        require(came == wanted, f"{how}: output {number}: expected {wanted}, got {came}")
        if expected.dtype.kind == "f":
            rtol = RELATIVE[expected.dtype.name]
            same = np.allclose(value, expected, rtol=rtol, atol=rtol * 1e-2, equal_nan=True)
        else:
            same = np.array_equal(value, expected)
        require(bool(same), f"{how}: output {number}: expected other values than came")


def _keeps(runtime: Runtime) -> None:
    model = MODELS[0]
    with tempfile.TemporaryDirectory(prefix="trueport-suite-") as folder:
        session: Session = runtime.load(_written(model.text, folder))
        given = np.array(model.feeds["x"])
        before = given.copy()
        first = session.run({"x": given})[0]
        kept = np.array(first)
        session.run({"x": given * 3})
        require(np.array_equal(given, before), "expected its inputs as they were after a run, got others")
        require(np.array_equal(first, kept), "expected the outputs of a run to outlive the next run, got others")


def _refuses(runtime: Runtime) -> None:
    whole = onnx.ModelProto()
    whole.CopyFrom(parser.parse_model(MODELS[0].text))
    content = whole.SerializeToString()
    with tempfile.TemporaryDirectory(prefix="trueport-suite-") as folder:
        for name, broken in (("truncated", content[: len(content) // 2]), ("garbage", b"\x08\x01garbage" * 9)):
            path = Path(folder) / f"{name}.onnx"
            path.write_bytes(broken)
            _require_refusal(runtime, path, name)
        _require_refusal(runtime, Path(folder) / "missing.onnx", "missing")


def _require_refusal(runtime: Runtime, path: Path, name: str) -> None:
    try:
        runtime.load(path)
    except Exception as error:  # noqa: BLE001 - any refusal is right
        lacks = runtime.lacks_kernel(error)
        require(lacks is None, f"expected a {name} file to lack no kernel, got {lacks!r}")
        return
    require(False, f"expected a {name} file to be refused, got a session")


def _lacks(runtime: Runtime) -> None:
    require(runtime.lacks_kernel(ValueError("x")) is None, "expected None for an error of somebody else")
    with tempfile.TemporaryDirectory(prefix="trueport-suite-") as folder:
        path = _written(_UNKNOWN, folder)
        try:
            runtime.load(path).run({"x": np.ones(2, np.float32)})
        except Exception as error:  # noqa: BLE001 - which one is for `lacks_kernel` to say
            lacks = runtime.lacks_kernel(error)
            require(isinstance(lacks, str) and "Unheard" in lacks, f"expected the operator Unheard, got {lacks!r}")
            return
    require(False, "expected an operator that does not exist to be refused, got a result")


def _written(text: str, folder: str) -> Path:
    path = Path(folder) / "model.onnx"
    onnx.save(parser.parse_model(text), str(path))
    return path
