"""What a person found out about bad checks: one note for all that have the same cause.

A note names the tools, the cases and, where it must, the words of the message by regular expressions, which match whole
names of cases and parts of messages. A check with two notes is a mistake of the file.

    [[note]]
    tools = ["openvino"]
    cases = "node/test_top_k_.*"
    fault = "OpenVINO"
    text = "Of equal elements it takes the later one first; the standard wants the earlier one."
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.wording import table

BAD = ("divergent", "crashed", "fault")
_SHOWN = 4


@dataclass(frozen=True)
class Note:
    """One finding.

    Attributes:
        tools: of whose checks it speaks; empty for all.
        cases: expression for the whole keys of cases.
        says: expression for a part of the message.
        fault: whose fault it is, or that it is none.
        text: what was found, in one or two sentences.
    """

    cases: str
    fault: str
    text: str
    tools: tuple[str, ...] = ()
    says: str = ""

    def fits(self, key: str, tool: str, message: str) -> bool:
        """Whether it speaks of this check."""
        return (
            (not self.tools or tool in self.tools)
            and re.fullmatch(self.cases, key) is not None
            and re.search(self.says, message) is not None
        )


@dataclass(frozen=True)
class Notes:
    """All findings, in the order of the file."""

    notes: tuple[Note, ...]

    @classmethod
    def read(cls, path: Path) -> Notes:
        """Returns the notes of a file; none where there is no file."""
        if not path.exists():
            return cls(())
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("note", [])
        return cls(tuple(Note(**{**item, "tools": tuple(item.get("tools", ()))}) for item in found))

    def report(self, records: Sequence[dict[str, Any]], tools: Sequence[str]) -> str:
        """Returns a section on every bad check: grouped by what is behind it, then those nobody has looked at."""
        groups: dict[Note | None, list[tuple[str, str, str, str]]] = {}
        for bad in _bad(records, tools):
            key, tool, _, message = bad
            fitting = [note for note in self.notes if note.fits(key, tool, message)]
            if len(fitting) > 1:
                raise SystemExit(f"two notes fit {key} with {tool}: '{fitting[0].text}' and '{fitting[1].text}'")
            groups.setdefault(fitting[0] if fitting else None, []).append(bad)
        rows = [_row(note, groups[note]) for note in self.notes if note in groups]
        head = ("whose fault", "what was found", "checks", "outcome", "tools", "cases")
        text = f"## What is behind the bad checks\n\n{table(head, rows)}\n\n"
        left = groups.get(None, [])
        if left:
            text += f"## Not looked at yet\n\n{table(('case', 'tool', 'outcome', 'message'), left)}\n\n"
        return text


def _bad(records: Sequence[dict[str, Any]], tools: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    for record in records:
        for tool in tools:
            measured = record["measured"].get(tool, {})
            if measured.get("outcome") in BAD:
                yield record["key"], tool, measured["outcome"], measured.get("message", "")[:160]


def _row(note: Note, checks: Sequence[tuple[str, str, str, str]]) -> tuple[str, ...]:
    keys = list(dict.fromkeys(key for key, _, _, _ in checks))
    names = list(dict.fromkeys(tool for _, tool, _, _ in checks))
    outcomes = list(dict.fromkeys(outcome for _, _, outcome, _ in checks))
    shown = ", ".join(key.split("/", 1)[1].removeprefix("test_") for key in keys[:_SHOWN])
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return note.fault, note.text, str(len(checks)), ", ".join(outcomes), ", ".join(names), shown + more
