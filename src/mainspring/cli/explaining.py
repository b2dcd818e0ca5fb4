"""Explanations for people: the sentence first, then the gates."""

from __future__ import annotations

from collections.abc import Mapping

from mainspring.cli.output import print_item, print_items


def print_explanation(told: Mapping[str, object], form: str) -> None:
    if form != "table":
        print_item(told, form)
        return
    print(f"{told['subject']} is {told['status']}: {told['why']}")
    print_items({"items": told.get("gates")}, ("gate", "open", "detail", "opens_when"), form)
