"""A round on several machines, or several processes of one, through Ray."""
