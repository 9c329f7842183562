"""A benchmark writes its own section of the page and leaves the others alone."""

from __future__ import annotations

import pytest
from benchmarks.pages import PAGE, with_section


def test_a_section_takes_the_place_of_the_one_with_its_heading() -> None:
    page = "# Benchmarks\n\n## One\n\nold\n\n## Two\n\nkept\n"
    assert with_section(page, "## One\n\nnew\n") == "# Benchmarks\n\n## One\n\nnew\n\n## Two\n\nkept\n"


def test_a_new_section_comes_last() -> None:
    assert with_section("# Benchmarks\n\n## One\n\nkept\n", "## Two\n\nnew") == (
        "# Benchmarks\n\n## One\n\nkept\n\n## Two\n\nnew\n"
    )
    assert with_section("", "## One\n\nnew") == "# Benchmarks\n\n## One\n\nnew\n"


def test_a_section_needs_a_heading() -> None:
    with pytest.raises(ValueError, match="section"):
        with_section("", "new")


def test_the_page_is_made_of_sections() -> None:
    page = PAGE.read_text(encoding="utf-8")
    first = next(part for part in page.split("\n## ") if not part.startswith("# "))
    assert with_section(page, f"## {first}") == page
