"""What a supervisor starts; not for people."""

from __future__ import annotations

import click


@click.command("worker-process", hidden=True)
@click.argument("app")
@click.option("--lifeline", type=int, required=True)
def worker_process(app: str, lifeline: int) -> int:  # noqa: ARG001 - the name is there for whoever reads `ps`
    """One worker process, tied to its supervisor."""
    from mainspring.app.worker_process import run_worker_process

    return run_worker_process(lifeline)
