"""The five papers' claims, and what our recorded results say of each."""
