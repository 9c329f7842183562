"""trueport tells whether a converted deep-learning model still computes what the original computes.

Importing it imports no framework.
"""

from trueport._version import __version__
from trueport.core.errors import MissingToolError, SourceError, StoreError, ToolError, TrueportError, UsageError
from trueport.core.options import CheckOptions, DynamicAxis, Tolerance, ToleranceKind
from trueport.core.result import Check, CheckResult, Finding
from trueport.core.taxonomy import Cause, Kind, Lane, Stage, Status, Symptom, Verdict

from trueport.api.check import check, check_path  # isort: skip  # the highest layer comes last
from trueport.api.warm import Checker  # isort: skip

__all__ = [
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
