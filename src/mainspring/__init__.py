"""Mainspring: every job on time, once; and where that did not happen, a record that says why."""
