"""The loop of a run, and the files that it writes."""
