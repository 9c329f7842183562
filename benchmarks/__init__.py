"""Speed, measured as ratios against other tools in one run."""
