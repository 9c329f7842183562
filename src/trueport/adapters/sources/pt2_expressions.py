"""Which size expressions, guards and operator names of a stored program are arithmetic and nothing else."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

# What torch's printer writes and sympy's and torch's evaluators understand; none of them runs text.
_SYMPY_CALLS = frozenset(
    {
        "Symbol",
        "Integer",
        "Float",
        "Rational",
        "Add",
        "Mul",
        "Pow",
        "Max",
        "Min",
        "Abs",
        "Mod",
        "Piecewise",
        "And",
        "Or",
        "Not",
        "Xor",
        "Eq",
        "Ne",
        "Lt",
        "Le",
        "Gt",
        "Ge",
        "Equality",
        "Unequality",
        "StrictLessThan",
        "LessThan",
        "StrictGreaterThan",
        "GreaterThan",
        "ceiling",
        "floor",
        "sqrt",
        "log",
        "exp",
        "true",
        "false",
        "FloorDiv",
        "ModularIndexing",
        "Where",
        "PythonMod",
        "CleanDiv",
        "CeilToInt",
        "FloorToInt",
        "CeilDiv",
        "LShift",
        "RShift",
        "PowByNatural",
        "FloatPow",
        "FloatTrueDiv",
        "IntTrueDiv",
        "IsNonOverlappingAndDenseIndicator",
        "TruncToFloat",
        "TruncToInt",
        "RoundToInt",
        "RoundDecimal",
        "ToFloat",
        "Identity",
        "BooleanTrue",
        "BooleanFalse",
        "ExprCondPair",
    }
)
_GUARD_CALLS = _SYMPY_CALLS | frozenset({"size", "stride", "storage_offset", "item", "max", "min", "int", "float"})
_ARITHMETIC = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Constant, ast.Name, ast.Load, ast.Call,
    ast.keyword, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.IfExp, ast.Tuple, ast.List,
)  # fmt: skip
_OPERATORS = frozenset(
    {
        "eq",
        "ne",
        "le",
        "ge",
        "lt",
        "gt",
        "neg",
        "pos",
        "mul",
        "add",
        "sub",
        "floordiv",
        "mod",
        "pow",
        "truediv",
        "and_",
        "or_",
        "not_",
        "xor",
        "lshift",
        "rshift",
        "getitem",
        "abs",
        "index",
        "invert",
    }
)
_TORCH_SYMBOLIC = re.compile(r"torch\.(sym_\w+|_sym_\w+)")
_NAMED_OPERATOR = re.compile(r"torch\.ops\.([a-z]\w*)\.(\w+)(?:\.(\w+))?")
_MOST_CHARACTERS = 10_000  # longer expressions are no sizes


def unsafe_expression(text: str) -> str | None:
    """Returns why evaluating the size expression with sympy could do more than arithmetic, or None."""
    return _unsafe(text, _SYMPY_CALLS, attributes=frozenset())


def unsafe_guard(text: str) -> str | None:
    """Returns why executing the guard could do more than compare sizes, or None."""
    return _unsafe(text, _GUARD_CALLS, attributes=frozenset({"size", "stride", "storage_offset", "item"}))


def unsafe_operator(text: str) -> str | None:
    """Returns why the operator of this name may be something else than a computation on tensors or sizes, or None."""
    library, _, name = text.partition(".")
    known = (
        (library == "_operator" and name in _OPERATORS)
        or (library == "math" and re.fullmatch(r"[a-z]\w*", name) is not None)
        or _TORCH_SYMBOLIC.fullmatch(text) is not None
        or _is_tensor_operator(text)
    )
    return None if known else f"the operator {text[:60]!r} is no registered tensor operator"


def _is_tensor_operator(text: str) -> bool:
    """Tells whether the name is an operator in torch's registry that touches no file.

    The registry is asked step by step, because `torch.ops` also has functions (`load_library`) and every object
    leads to its class.
    """
    match = _NAMED_OPERATOR.fullmatch(text)
    if match is None:
        return False
    namespace_name, name, overload_name = match.groups()
    namespace = getattr(torch.ops, namespace_name, None)
    if not isinstance(namespace, torch._ops._OpNamespace | torch._ops._HigherOrderNamespace):
        return False
    operator = getattr(namespace, name, None)
    if isinstance(operator, torch._ops.HigherOrderOperator):
        return overload_name is None
    if not isinstance(operator, torch._ops.OpOverloadPacket):
        return False
    overloads = operator.overloads()
    chosen = overloads if overload_name is None else [overload_name]
    return all(o in overloads and not _takes_file(getattr(operator, o)) for o in chosen)


def _takes_file(overload: Any) -> bool:
    # aten::from_file maps a file and can create it.
    return any("file" in a.name or (a.name == "path" and str(a.type) == "str") for a in overload._schema.arguments)


def _unsafe(text: str, calls: frozenset[str], attributes: frozenset[str]) -> str | None:
    shown = repr(text if len(text) <= 60 else text[:57] + "...")
    try:
        tree = ast.parse(text, mode="eval") if len(text) <= _MOST_CHARACTERS else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return f"the expression {shown} cannot be read as arithmetic"
    bad = next((node for node in ast.walk(tree) if not _harmless(node, calls, attributes)), None)
    return None if bad is None else f"the expression {shown} is more than arithmetic"


def _harmless(node: ast.AST, calls: frozenset[str], attributes: frozenset[str]) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            return function.attr in attributes
        return isinstance(function, ast.Name) and function.id in calls
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str | bytes) or (
            isinstance(node.value, str) and re.fullmatch(r"[\w.]*", node.value) is not None
        )
    if isinstance(node, ast.Attribute):
        return node.attr in attributes or (isinstance(node.value, ast.Name) and node.value.id == "math")
    if isinstance(node, ast.Subscript):
        return bool(attributes)  # guards only: L['x'].size()[0]
    if isinstance(node, ast.Tuple):
        return not attributes  # size expressions only: the branches of a Piecewise
    return isinstance(node, _ARITHMETIC)
