"""Trains many runs: in parallel, each once, resumable, up to a deadline."""
