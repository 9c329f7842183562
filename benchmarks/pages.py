"""The page of measured times: each benchmark writes its own section and leaves the others alone."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
TITLE = "# Benchmarks"


def with_section(page: str, section: str) -> str:
    """Returns a page with a section put in the place of the one that has its heading, or at the end.

    Args:
        page: the whole text; empty for a new page.
        section: begins with its heading, `## ...`.
    """
    heading = section.splitlines()[0]
    if not heading.startswith("## "):
        raise ValueError(f"expected a section that begins with '## ', got '{heading}'")
    parts = re.split(r"(?m)^(?=## )", page.strip() or TITLE)
    places = [i for i, part in enumerate(parts) if part.splitlines()[0] == heading]
    if places:
        parts[places[0]] = section
    else:
        parts.append(section)
    return "\n\n".join(part.strip() for part in parts) + "\n"
