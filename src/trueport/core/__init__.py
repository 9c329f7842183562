"""The vocabulary: taxonomy, values and errors. Knows no framework and does no work."""
