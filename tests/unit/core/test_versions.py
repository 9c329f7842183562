"""Records name the versions of what is installed and nothing else."""

from __future__ import annotations

import platform

import numpy as np

from trueport.core.versions import base_versions, package_versions


def test_what_is_not_installed_is_left_out():
    assert package_versions("numpy", "no-such-package-at-all") == {"numpy": np.__version__}


def test_base_versions():
    told = base_versions()
    assert set(told) == {"trueport", "python", "numpy"}
    assert told["python"] == platform.python_version()
