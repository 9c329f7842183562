"""Tests of float64 evaluation."""
