"""Finds the application that `MODULE:APP` names; MODULE is looked up in the working folder, too."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

from mainspring.app.application import Mainspring
from mainspring.core.errors import InvalidInput


def locate(name: str) -> Mainspring:
    """The application; InvalidInput says what was missing. What the module itself raises comes through."""
    module_name, _, attribute = name.partition(":")
    if module_name.endswith(".py"):
        raise InvalidInput.at("app", f"{name!r} is a file; write it as a module: {_as_module(module_name)}")
    module = _module(module_name, name)
    return _named(module, attribute, name) if attribute else _only(module, name)


def _module(module_name: str, name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Something that the module itself imports may be what is missing: that is its own error, told as it is.
        if error.name is None or not (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise
        raise InvalidInput.at(
            "app", f"{name!r}: there is no module {error.name!r} in {folder} or on the Python path"
        ) from None


def _named(module: ModuleType, attribute: str, name: str) -> Mainspring:
    found: object = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Mainspring):
        what = "is not there" if found is None else f"is a {type(found).__name__}"
        raise InvalidInput.at(
            "app", f"{name!r}: {attribute!r} {what}; it must be a Mainspring application{_hint(module)}"
        )
    return found


def _only(module: ModuleType, name: str) -> Mainspring:
    found = {id(value): value for value in vars(module).values() if isinstance(value, Mainspring)}
    if len(found) != 1:
        count = "no Mainspring application" if not found else f"{len(found)} Mainspring applications"
        raise InvalidInput.at("app", f"module {name!r} holds {count}; name one as {name}:APP{_hint(module)}")
    return next(iter(found.values()))


def _hint(module: ModuleType) -> str:
    names = [key for key, value in vars(module).items() if isinstance(value, Mainspring)]
    return f" (it has {', '.join(names)})" if names else ""


def _as_module(path: str) -> str:
    return path.removesuffix(".py").strip("./").replace(os.sep, ".") + ":app"
