"""Measures a workload on a real store, side by side with the bare SQL that does the same writes.

    result = run("flood", store="postgresql://…", runs=200_000)     # the object that `mainspring bench … --json` prints

Whatever a workload stores lies in a schema or file of its own beside the store that is named, and is removed again.
"""

from mainspring.bench.run import WORKLOADS, run

__all__ = ["WORKLOADS", "run"]
