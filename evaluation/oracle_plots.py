"""Plots of how well scores separate wrong conversions from right ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.metrics import roc_curve

from evaluation.oracle_statistics import ARITHMETIC, BOTH, LIMITS, MEANING, SCORES, labelled

_LOWEST, _HIGHEST = -6.0, 18.0


def roc(records: Sequence[dict[str, Any]], folder: Path, title: str) -> None:
    """Draws the ROC curves of lanes and rules with their operating points."""
    figure, axes = plt.subplots(figsize=(7, 6))
    for name in SCORES:
        truth, scores = labelled(records, name)
        if truth.all() or not truth.any():
            continue
        alarms, hits, _ = roc_curve(truth, scores)
        (line,) = axes.plot(alarms, hits, label=name, linewidth=2.5 if name == BOTH else 1.2, alpha=0.8)
        called = scores > LIMITS[name]
        axes.plot(called[~truth].mean(), called[truth].mean(), "o", color=line.get_color(), markersize=8)
    axes.set(xlabel="right conversions called different", ylabel="wrong conversions called different", title=title)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize="small", title="dots: at the rule's own threshold")
    _save(figure, folder, "roc")


def scores(records: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draws the distribution of both lanes' scores for right and wrong conversions, with the thresholds."""
    figure, both = plt.subplots(2, 1, figsize=(8, 6), sharex=True)
    bins = np.linspace(_LOWEST, _HIGHEST, 73)
    for axes, name in zip(both, (MEANING, ARITHMETIC), strict=True):
        truth, found = labelled(records, name)
        exponents = np.clip(np.log10(np.maximum(found, 10.0**_LOWEST)), _LOWEST, _HIGHEST)
        axes.hist([exponents[~truth], exponents[truth]], bins, stacked=True, label=["right", "wrong"])
        axes.axvline(np.log10(LIMITS[name]), color="black", linestyle="--", label=f"threshold {LIMITS[name]:g}")
        axes.set(ylabel="conversions", title=name)
        axes.legend()
    both[-1].set(xlabel=f"log10 of the score (clipped at {_LOWEST:g} and {_HIGHEST:g})")
    _save(figure, folder, "scores")


def _save(figure: Figure, folder: Path, name: str) -> None:
    figure.tight_layout()
    with mpl.rc_context({"svg.hashsalt": "trueport"}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=120)
    plt.close(figure)
