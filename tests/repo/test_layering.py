"""Arrows point downwards only: the imports of the package, read without importing it.

cli -> api -> report, bisect, locate, cause, reduce, adapters, isolation -> oracle, inputs, onnxgraph -> core
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "trueport"
ALLOWED = {
    "core": set(),
    "onnxgraph": {"core"},
    "oracle": {"core"},
    "inputs": {"core"},
    "isolation": {"core"},
    "adapters": {"core", "onnxgraph", "oracle", "inputs"},
    "bisect": {"core", "oracle", "inputs"},
    "cause": {"core", "oracle", "inputs"},
    "locate": {"core", "oracle", "onnxgraph"},
    "reduce": {"core"},
    "report": {"core", "oracle"},
    "api": {
        "core",
        "onnxgraph",
        "oracle",
        "inputs",
        "isolation",
        "adapters",
        "bisect",
        "cause",
        "locate",
        "reduce",
        "report",
    },
    "cli": {"core", "report", "api", "trueport"},
    "testing": {"core", "onnxgraph", "oracle", "inputs", "adapters", "bisect", "api"},
    "trueport": {"core", "api"},
    "__main__": {"cli"},
    "_version": set(),
}
"""Layer -> what it may import besides itself and the version. A new layer gets its line here, and its reason in
ARCHITECTURE.md."""
NO_FRAMEWORK = ("core", "oracle", "inputs", "bisect", "cause", "locate", "reduce", "report", "isolation", "cli")
FRAMEWORKS = {"torch", "onnx", "onnxruntime", "onnxscript", "onnx_ir", "tensorflow", "jax", "transformers"}
ONLY_ONNX = {"onnxgraph"}
"""Reads ONNX protos, and knows no other framework."""


def modules() -> Iterator[tuple[str, Path]]:
    """Yields (dotted name, file) of every module."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def imports(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yields (line, dotted name) of all that a module imports, inside functions as well, as whole names."""
    package = name if MODULES.get(name, Path()).name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield node.lineno, whole if whole in MODULES else base


def layer(name: str) -> str:
    """Returns the first folder below the package; the package itself for what it re-exports."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "trueport"


def upward(name: str, text: str) -> list[str]:
    """Returns the arrows of a module that its layer does not allow."""
    own = layer(name)
    wrong = []
    for line, target in imports(name, text):
        if target.split(".")[0] != "trueport":
            continue
        other = layer(target)
        if other not in (own, "_version") and other not in ALLOWED.get(own, set()):
            wrong.append(f"{name}:{line} imports {target}; {own} may import {sorted(ALLOWED.get(own, set()))}")
    return wrong


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """Returns the nodes of one cycle, or nothing."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return path[path.index(node) :]
        if node in done:
            return []
        for other in sorted(edges.get(node, ())):
            found = visit(other, [*path, node])
            if found:
                return found
        done.add(node)
        return []

    for start in sorted(edges):
        found = visit(start, [])
        if found:
            return found
    return []


def top_level(name: str, text: str) -> set[str]:
    """Returns the modules of the package that importing this one imports at once."""
    tree = ast.parse(text)
    body: list[ast.stmt] = []
    for node in tree.body:
        guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not guarded and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            body.append(node)
    found = imports(name, ast.unparse(ast.Module(body, [])))
    return {target for _, target in found if target in MODULES and target not in (name, "trueport")}


# ---------------------------------------------------------------------- the package


def test_every_layer_has_its_rule():
    assert {layer(name) for name in MODULES} == set(ALLOWED)


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_no_upward_arrow(name):
    wrong = [w for module, path in MODULES.items() if layer(module) == name for w in upward(module, path.read_text())]
    assert not wrong, "\n".join(wrong)


def test_the_rules_themselves_have_no_cycle():
    assert cycle({k: v - {"trueport"} for k, v in ALLOWED.items()}) == []


def test_no_cycle_between_layers():
    edges: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        for _, target in imports(name, path.read_text()):
            if target in MODULES and layer(target) != layer(name):
                edges.setdefault(layer(name), set()).add(layer(target))
    assert cycle(edges) == []


def test_no_cycle_between_modules():
    edges = {}
    for name, path in MODULES.items():
        text = path.read_text()
        edges[name] = top_level(name, text)
    packages = {n for n, p in MODULES.items() if p.name == "__init__.py"}
    # A package's own list of names points at its modules, and they may import their neighbours by whole name.
    edges = {n: {t for t in targets if t not in packages} for n, targets in edges.items() if n not in packages}
    assert cycle(edges) == []


@pytest.mark.parametrize("name", NO_FRAMEWORK)
def test_no_framework_is_known_here(name):
    found = [
        f"{module}:{line} imports {target}"
        for module, path in MODULES.items()
        if layer(module) == name
        for line, target in imports(module, path.read_text())
        if target.split(".")[0] in FRAMEWORKS
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", sorted(ONLY_ONNX))
def test_only_onnx_is_known_here(name):
    found = {
        target.split(".")[0]
        for module, path in MODULES.items()
        if layer(module) == name
        for _, target in imports(module, path.read_text())
    }
    assert found & FRAMEWORKS <= {"onnx", "onnx_ir"}


def test_no_star_imports():
    found = [
        f"{name}:{node.lineno}"
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names)
    ]
    assert not found


# ---------------------------------------------------------------------- the test itself


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trueport.oracle.new", "from trueport.adapters import converters"),
        ("trueport.oracle.new", "import trueport.api.check"),
        ("trueport.oracle.new", "def f():\n    from trueport.bisect import road"),
        ("trueport.core.new", "from trueport.oracle.units import FLOAT_TYPES"),
        ("trueport.core.new", "from trueport import oracle"),
        ("trueport.core.new", "from ..oracle import units"),
        ("trueport.cause.new", "from trueport.adapters.protocols import Wide"),
        ("trueport.report.new", "from trueport.bisect.judge import Trial"),
        ("trueport.isolation.new", "from trueport.oracle import Draws"),
        ("trueport.adapters.new", "from trueport import check"),
        ("trueport.api.new", "from trueport.cli import main"),
    ],
)
def test_an_upward_arrow_is_found(name, text):
    assert upward(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trueport.oracle.new", "from trueport.core.taxonomy import Kind"),
        ("trueport.oracle.new", "from . import units"),
        ("trueport.api.new", "from trueport import _version"),
        ("trueport.cli.new", "import numpy"),
    ],
)
def test_a_downward_arrow_is_not(name, text):
    assert not upward(name, text)


def test_a_cycle_is_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
