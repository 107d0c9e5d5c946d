"""Workloads and clocks of `launchers.benchmark`."""
