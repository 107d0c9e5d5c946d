"""All methods on one footing: what `launchers.compare` runs and concludes."""
