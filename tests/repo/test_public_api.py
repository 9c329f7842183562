"""What `import trueport` gives is documented, and all of it."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import trueport

DOCUMENTED = [
    "Cause",
    "Check",
    "CheckOptions",
    "CheckResult",
    "Checker",
    "DynamicAxis",
    "Finding",
    "Kind",
    "Lane",
    "MissingToolError",
    "SourceError",
    "Stage",
    "Status",
    "StoreError",
    "Symptom",
    "Tolerance",
    "ToleranceKind",
    "ToolError",
    "TrueportError",
    "UsageError",
    "Verdict",
    "__version__",
    "check",
    "check_path",
]


def test_all_is_the_documented_list():
    added, removed = set(trueport.__all__) - set(DOCUMENTED), set(DOCUMENTED) - set(trueport.__all__)
    assert not added | removed, (
        f"public but not documented: {sorted(added)}; documented but not public: {sorted(removed)}. "
        "If the change is meant, add it to DOCUMENTED here, to docs/reference and to the changelog; "
        "if it is not, give the name an underscore or take it out of trueport.__all__."
    )


def test_all_is_sorted_and_without_repetition():
    assert trueport.__all__ == sorted(trueport.__all__)
    assert len(set(trueport.__all__)) == len(trueport.__all__)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_exists_and_says_what_it_is(name):
    value = getattr(trueport, name)
    assert name == "__version__" or inspect.getdoc(value)


def test_nothing_else_looks_public():
    """In a fresh interpreter: other tests import submodules, which then hang on the package."""
    program = "import trueport, types; print(*(n for n, v in vars(trueport).items() if not n.startswith('_') and not isinstance(v, types.ModuleType)))"  # noqa: E501
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()
    assert set(shown) == set(DOCUMENTED) - {"__version__"}


def test_options_are_keyword_only():
    parameters = inspect.signature(trueport.check).parameters
    assert [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD] == ["model", "args", "kwargs"]
