from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

WriteFile = Callable[..., str]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def write(tmp_path: Path) -> WriteFile:
    """Writes a Python file and returns its path; the usual imports stand before the text."""

    def writer(text: str, name: str = "net.py", *, imports: bool = True) -> str:
        path = tmp_path / name
        head = "import torch\nfrom torch import nn\n" if imports else ""
        path.write_text(head + textwrap.dedent(text))
        return str(path)

    return writer
