"""The text of a result, compared with files, and what must never be in it."""

from __future__ import annotations

import io
import unicodedata

import pytest
from rich.console import Console

from tests.golden import check_results
from trueport.core.result import CheckResult
from trueport.report.text import MAX_FINDINGS, render, render_headlines
from trueport.report.visible import visible

RESULTS = {name: getattr(check_results, name) for name in ("faithful", "divergent", "crashed", "inconclusive")}


def rendered(renderable, *, width: int = 100, color: str | None = None) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, highlight=False, markup=False, color_system=color, force_terminal=color is not None
    )
    console.print(renderable, crop=False)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("name", RESULTS)
def test_text(name, golden):
    golden(f"check_{name}.txt", rendered(render(RESULTS[name]())))


def test_verbose_text(golden):
    golden("check_divergent_verbose.txt", rendered(render(check_results.divergent(), verbose=True)))


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", [20, 60, 100])
def test_strings_of_a_model_cannot_move_hide_or_colour_anything(verbose, width):
    text = rendered(render(check_results.divergent(), verbose=verbose), width=width)
    assert not [sign for sign in text if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cf", "Cs")]


def test_markup_in_a_name_is_text():
    text = rendered(render(check_results.divergent()), color="truecolor")
    assert "[bold green]" in text
    assert "\x1b[2K" not in text
    assert r"\x1b[2K" in text


@pytest.mark.parametrize("width", [20, 60, 100])
def test_the_command_that_repeats_a_check_is_on_one_line(width):
    result = check_results.divergent()
    assert f"  repeat      {result.checks[0].repeat}" in rendered(render(result), width=width).splitlines()


def test_what_is_left_out_is_counted():
    text = rendered(render(check_results.divergent()))
    assert f"findings ({MAX_FINDINGS + 2})" in text
    assert "2 more findings left out" in text
    assert "2 more nodes left out" in text
    assert "left out" not in rendered(render(check_results.divergent(), verbose=True))


def test_nothing_compared_is_said():
    assert "none compared" in rendered(render(check_results.crashed()))


def test_no_checks_is_no_silence():
    result = CheckResult(check_results.SUBJECT, (), 3)
    assert "nothing was checked" in rendered(render(result))


def test_headlines_are_one_line_per_check():
    lines = rendered(render_headlines(check_results.divergent())).splitlines()
    assert [line.split()[0] for line in lines] == ["divergent", "faithful"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("Größe → 模型", "Größe → 模型"),
        ("\x1b[0m\x9b\x07\r\n", r"\x1b[0m\x9b\x07\r\n"),
        ("a\u202eb\u200bc\u2028d\ud800", r"a\u202eb\u200bc\u2028d\ud800"),
    ],
)
def test_visible(text, expected):
    assert visible(text) == expected


def test_visible_keeps_line_feeds_of_messages():
    assert visible("a\n\tb\r", lines=True) == "a\n\\tb\\r"
