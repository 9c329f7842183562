"""Faults planted at known nodes of real architectures: what localization is measured against."""
