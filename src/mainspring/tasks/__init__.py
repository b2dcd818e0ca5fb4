"""Typed tasks: the decorator's side of a job."""
