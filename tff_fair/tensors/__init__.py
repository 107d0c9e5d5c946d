"""Arithmetic on tensors that clients and aggregators share."""
