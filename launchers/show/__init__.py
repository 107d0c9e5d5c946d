"""Numbers, words, tables and pages as text: what all programs show with."""
