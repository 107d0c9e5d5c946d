"""The web page about runs."""
