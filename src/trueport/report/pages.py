"""Where the documentation says more about a finding: one page a stage, one section a cause."""

from __future__ import annotations

from trueport.core.result import Finding
from trueport.core.taxonomy import Cause

FOLDER = "docs/troubleshooting"


def troubleshooting_page(finding: Finding) -> str:
    """Returns the page and section, relative to the root of the repository; '' for a finding without a cause."""
    if finding.cause is None or finding.stage is None:
        return ""
    return f"{FOLDER}/{finding.stage}.md#{anchor(finding.cause)}"


def anchor(cause: Cause) -> str:
    """Returns the anchor of a cause's section: headings are written as the taxonomy writes the cause.

    >>> anchor(Cause.ALGORITHM_LOGIC)
    'algorithmic-errorlogic'
    """
    return cause.replace("/", "")
