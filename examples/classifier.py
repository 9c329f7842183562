"""A small classifier with a task metric: accuracy on labelled rows of a CSV file."""

import csv

import numpy as np
import torch
from torch import nn
from torch.export import Dim


def model():
    """Returns the classifier with one example row."""
    classifier = nn.Linear(3, 3)
    with torch.no_grad():
        classifier.weight.copy_(torch.tensor([[2.0, -1, 0], [-1, 2, -1], [0, -1, 2]]))
        classifier.bias.zero_()
    return classifier.eval(), (torch.tensor([[0.9, 0.2, 0.1], [0.1, 0.3, 0.8]]),)


model.dynamic_shapes = ({0: Dim("batch")},)


def accuracy(run, data):
    """Returns the share of rows of the file that a model labels rightly; `run` is one side of the check."""
    with open(data, newline="") as file:
        rows = np.array(list(csv.reader(file)), dtype=np.float32)
    (scores,) = run(rows[:, :3])
    return float((scores.argmax(-1) == rows[:, 3]).mean())
