from __future__ import annotations

import json

import click


@click.command
def openapi() -> None:
    """Print the OpenAPI document of the HTTP API."""
    from mainspring.api.server import openapi as document

    print(json.dumps(document(), indent=2))
