"""All methods on one footing: what `launchers.compare` plans and concludes."""
