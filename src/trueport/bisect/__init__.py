"""Which stage broke it: every checkpoint is judged against the same references, and the pattern names the stage."""
