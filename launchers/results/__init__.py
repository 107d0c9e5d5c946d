"""The recorded results of the papers' tables, and what follows from them."""
