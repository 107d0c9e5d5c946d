"""The baselines of the five papers, as TFF learning processes."""
