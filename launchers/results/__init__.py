"""The recorded results of the published tables."""
