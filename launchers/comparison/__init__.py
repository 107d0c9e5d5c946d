"""All methods under the same conditions: what a comparison runs and finds."""
