"""A traced graph is executed as it was traced, however often it runs."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import nn

from trueport.adapters.converters.torch_script import TorchScript
from trueport.adapters.float64.constants import KnownNumbers
from trueport.adapters.protocols import ConverterOptions
from trueport.adapters.sources import subject_from_object
from trueport.inputs.draw import InputSet


class Decay(nn.Module):
    def forward(self, series):
        total = torch.zeros_like(series[0])
        for step in range(series.shape[0]):
            total = 0.5 * total + series[step]
        return total


def test_later_runs_see_the_same_operators(tmp_path):
    subject = subject_from_object(Decay(), (torch.ones(3, 2),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = next(TorchScript().convert(subject, ConverterOptions(tmp_path, input_names=("series",))))
    # The interpreter profiles its first runs and rewrites the graph for the types that it saw.
    for value in (1.0, 2.0, -1.0, np.nan, np.inf):
        series = np.full((3, 2), value, np.float32)
        (got,) = traced.executable.evaluate(InputSet("x", "given", (series,)), KnownNumbers([]))
        np.testing.assert_array_equal(got.value, 1.75 * series[0].astype(np.float64))
