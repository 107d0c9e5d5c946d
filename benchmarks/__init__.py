"""Times rounds of our implementations next to others; not in the wheel."""
