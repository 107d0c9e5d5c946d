"""The published tables, and the runs that reproduce them."""
