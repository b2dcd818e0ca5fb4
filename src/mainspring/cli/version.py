from __future__ import annotations

import click

from mainspring import __version__


@click.command
def version() -> None:
    """Print the version."""
    print(__version__)
