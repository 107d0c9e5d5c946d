"""Functions of tensors that clients, losses and aggregators share."""
