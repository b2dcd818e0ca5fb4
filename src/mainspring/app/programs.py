"""From a command line to a running role: settings, the application, the loop."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Collection, Coroutine, Mapping
from importlib.util import find_spec
from typing import TypeVar

from mainspring import config
from mainspring.app.application import Mainspring
from mainspring.app.locate import locate
from mainspring.core.errors import InvalidInput
from mainspring.observe import logs

T = TypeVar("T")

DEMO = "mainspring.demo:app"


def run_roles(
    app_name: str | None,
    flags: Mapping[str, object],
    roles: Collection[str] | None = None,
    *,
    demo: bool = False,
    migrate: bool = False,
    reload: bool = False,
    open_browser: bool = False,
) -> int:
    """Runs the roles (those of the settings if none are named) until a signal; answers the exit code."""
    from mainspring.app.roles import Plan, carry_out

    settings, app, name = _settled(app_name, flags, demo=demo)
    logs.configure(level=settings.log_level, form=settings.log_format)
    chosen = frozenset(roles or settings.roles)
    if chosen == {"worker"} and app is None:
        raise InvalidInput.at("app", "a worker needs an application with tasks: mainspring worker MODULE:APP")
    if settings.store.startswith("memory"):
        raise InvalidInput.at("store", "memory:// is for tests within one process; write sqlite:///file.db")
    plan = Plan(settings, chosen, app, name, migrate=migrate, reload=reload, open_browser=open_browser)
    return run_loop(carry_out(plan))


def run_loop(main: Coroutine[object, object, T]) -> T:
    """The faster loop where it is installed."""
    if find_spec("uvloop") is None:
        return asyncio.run(main)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def _settled(
    app_name: str | None, flags: Mapping[str, object], *, demo: bool
) -> tuple[config.Settings, Mainspring | None, str]:
    """Settings that are given in the application's code count like flags that were not given."""
    if demo and app_name:
        raise InvalidInput.at("demo", "--demo brings an application of its own; leave MODULE:APP out")
    settings = config.load(flags=flags)
    name = DEMO if demo else app_name or settings.app
    if not name:
        return settings, None, ""
    app = locate(name)
    settings = config.load(flags=flags, arguments=app.arguments)
    app.adopt(settings)
    return dataclasses.replace(settings, app=name), app, name
