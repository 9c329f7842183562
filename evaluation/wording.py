"""Numbers, tables and their circumstances as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table; what would end a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def number(value: float | None, digits: int = 2) -> str:
    """Returns a number in few characters; '-' for none."""
    if value is None:
        return "-"
    if value >= 1e100:
        return "> 1e100"
    if value != 0 and (value < 0.01 or value >= 100_000):
        return f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return f"{value:,.{0 if value >= 100 else digits}f}"


def machine() -> dict[str, str | int]:
    """Returns the processor and how many cores of it there are."""
    cpu = platform.processor() or platform.machine()
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        names = [line.split(":", 1)[1] for line in listed.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].strip() if names else cpu
    return {"cpu": cpu, "cores": os.cpu_count() or 1}


def circumstances(records: Sequence[dict[str, object]]) -> str:
    """Returns one sentence on when, on what machine and with which versions records were measured."""
    days = sorted({str(record["day"]) for record in records})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    versions = records[-1]["versions"]
    assert isinstance(versions, dict)
    packages = ", ".join(f"{name} {versions[name]}" for name in sorted(versions) if name != "trueport")
    machines = {f"{m['cpu']}, {m['cores']} cores" for record in records if (m := _machine(record))}
    return f"Measured {when} on {' and '.join(sorted(machines))}; {packages}."


def _machine(record: dict[str, object]) -> dict[str, object] | None:
    measured = record["measured"]
    found = measured.get("machine") if isinstance(measured, dict) else None
    return found if isinstance(found, dict) else None


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
