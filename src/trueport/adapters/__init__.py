"""The outside world: one file per tool, each imported only when it is used."""
