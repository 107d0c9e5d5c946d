"""The methods that the papers compare with, an entry each."""
