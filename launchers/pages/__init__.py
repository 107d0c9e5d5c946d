"""Pages that report on runs and tasks."""
