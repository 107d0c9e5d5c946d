"""What the flags of a run may be: methods, presets, settings."""
