"""Renders results for people and machines; computes nothing."""
