"""Modules and functions stay small enough to be read, and are named after what is in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "trueport"
FILES = [*sorted(SOURCE.rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]
MODULE_LINES = 600
FUNCTION_LINES = 40
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common", "stuff", "base"}
PLACEHOLDER = re.compile(r"\b(TODO|FIXME|XXX|TBD|HACK)\b|^[\s.…]*$")


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def statement_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns the lines of the body without its docstring; signature, comments and blank lines between do not count."""
    body = function.body
    if (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        body = body[1:]
    lines: set[int] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt | ast.expr | ast.ExceptHandler):
                lines.update((node.lineno, node.end_lineno or node.lineno))
    return len(lines)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yields (file:function, lines of statements)."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{_relative(path)}:{node.name}", statement_lines(node)


def test_modules_are_short():
    lines = {_relative(path): len(path.read_text().splitlines()) for path in FILES}
    assert not {name: count for name, count in lines.items() if count > MODULE_LINES}


def test_no_vague_names():
    assert [_relative(p) for p in FILES if {p.stem.strip("_"), p.parent.name.strip("_")} & VAGUE] == []


def test_functions_are_short():
    long = {
        name: count
        for path in sorted(SOURCE.rglob("*.py"))
        for name, count in functions(path)
        if count > FUNCTION_LINES
    }
    assert not long, "split them: " + ", ".join(f"{n} ({c} lines)" for n, c in long.items())


def _documented(path: Path) -> Iterator[tuple[str, str | None]]:
    tree = ast.parse(path.read_text())
    yield _relative(path), ast.get_docstring(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield f"{_relative(path)}:{node.name}", ast.get_docstring(node)


def test_no_placeholder_docstrings():
    found = [
        name
        for path in sorted(SOURCE.rglob("*.py"))
        for name, text in _documented(path)
        if text is not None and PLACEHOLDER.search(text)
    ]
    assert not found


def test_every_module_states_its_idea():
    missing = [name for path in sorted(SOURCE.rglob("*.py")) for name, text in [next(_documented(path))] if not text]
    assert missing == [], "a module docstring states the one idea"


def test_nothing_is_left_to_do():
    marks = re.compile(r"#.*\b(TODO|FIXME|XXX|HACK)\b")
    found = [
        f"{_relative(path)}:{i}"
        for path in sorted(SOURCE.rglob("*.py"))
        for i, line in enumerate(path.read_text().splitlines(), 1)
        if marks.search(line)
    ]
    assert not found


def test_lines_are_counted_as_they_are_read():
    body = ['"""Says.', "", "More.", '"""', "# why", "x = [", "    1,", "    2,", "]", "", "return x"]
    text = "\n".join(["def f(a,", "      b):", *(f"    {line}" for line in body)])
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert statement_lines(function) == 5
