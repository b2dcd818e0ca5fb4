"""How often the garbage of a worker process is looked for.

Each run makes some objects that live for milliseconds and a few that wait in queues; Python looks for cycles after every 700
new ones, which finds nothing and takes a fifth of the time of a short run. What users set themselves stays.
"""

from __future__ import annotations

import gc

PYTHONS_OWN = gc.get_threshold()
SELDOM = (20_000, 20, 20)


def collect_seldom() -> None:
    """Once all modules are loaded: what is there by now stays, and is not looked at again."""
    gc.collect()
    gc.freeze()
    if gc.get_threshold() == PYTHONS_OWN:
        gc.set_threshold(*SELDOM)
