"""What a check leaves behind in the temporary folder: nothing, also where a framework writes files of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILE = """
import tensorflow as tf

@tf.function(input_signature=[tf.TensorSpec((2,), tf.float32, "x")])
def f(x):
    if tf.reduce_sum(x) > 0:
        x = x * 2
    with open(WITNESS, "a") as seen:
        seen.write(f.python_function.__code__.co_filename)
    return x
"""


@pytest.mark.slow
def test_the_code_that_autograph_generates_is_removed_with_the_worker(tmp_path: Path) -> None:
    """It is written to a file each time, which TensorFlow removes at the end of a process that is not killed."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "net.py").write_text(f"WITNESS = {str(tmp_path / 'witness')!r}\n{FILE}")
    done = subprocess.run(
        [sys.executable, "-m", "trueport", "check", "net.py:f"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr
    assert (tmp_path / "witness").exists()
    assert list((tmp_path / "temporary").iterdir()) == []
