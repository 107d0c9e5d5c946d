"""The options of a run: methods, presets, settings."""
