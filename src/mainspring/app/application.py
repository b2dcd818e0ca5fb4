"""The application: users' tasks and schedules, and the way from a function to a stored job."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Never, ParamSpec, TypeVar, overload

from mainspring import config
from mainspring.app.connections import Connections
from mainspring.app.schedules import Declared, declare, refuse_duplicates
from mainspring.core.errors import InvalidInput, Problem
from mainspring.tasks.registry import Hook, Middleware, Registry
from mainspring.tasks.task import Task

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Hook)
M = TypeVar("M", bound=Middleware)


class Mainspring:
    """Holds tasks and schedules; submits jobs from async code, from sync code, and after a fork.

    `store`, `queue` and the other settings come from here, the environment or `mainspring.toml`; they are read when
    they are first needed, so that importing a module of tasks needs no store.
    """

    def __init__(self, store: str | None = None, queue: str | None = None, **settings: object) -> None:
        self._arguments = _known({"store": store, "queue": queue, **settings})
        self._settings: config.Settings | None = None
        self.registry = Registry()
        self.schedules: list[Declared] = []
        self.connections = Connections(lambda: self.settings)

    @property
    def settings(self) -> config.Settings:
        if self._settings is None:
            self._settings = config.load(arguments=self._arguments)
        return self._settings

    @property
    def arguments(self) -> dict[str, object]:
        """The settings that were given in code."""
        return dict(self._arguments)

    def adopt(self, settings: config.Settings) -> None:
        """A role was started with these settings: what is submitted here goes where it works."""
        self._settings = settings

    @overload
    def task(
        self, function: Callable[P, Coroutine[object, Never, R]], /
    ) -> Task[P, Coroutine[object, Never, R], R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R, R]: ...

    @overload
    def task(self, /, *, name: str | None = None, **fields: object) -> _Decorator: ...

    def task(
        self, function: Callable[P, object] | None = None, /, *, name: str | None = None, **fields: object
    ) -> Task[P, object, object] | _Decorator:
        """Makes a function a task; the fields are the defaults of its jobs."""
        decorator = _Decorator(self, name, fields, schedule=None)
        return decorator if function is None else decorator(function)

    def cron(
        self, expression: str, *, timezone: str | None = None, name: str | None = None, **fields: object
    ) -> _Decorator:
        """Makes a function a task that runs whenever the expression says; the schedule is stored when a worker starts."""
        schedule: dict[str, object] = {"cron": expression}
        if timezone is not None:
            schedule["timezone"] = timezone
        return _Decorator(self, name, fields, schedule)

    def every(self, interval: object, *, name: str | None = None, **fields: object) -> _Decorator:
        """Makes a function a task that runs once each interval."""
        return _Decorator(self, name, fields, {"every": interval})

    def on_start(self, hook: H) -> H:
        """Runs when a worker process starts, before its first run."""
        self.registry.on_start.append(hook)
        return hook

    def on_stop(self, hook: H) -> H:
        """Runs when a worker process stops, after its last run."""
        self.registry.on_stop.append(hook)
        return hook

    def middleware(self, around: M) -> M:
        """Runs round each attempt, the first one registered outermost."""
        self.registry.middleware.append(around)
        return around

    @property
    def modules(self) -> frozenset[str]:
        """Where its tasks are written: schedules of these modules that are declared no more are its own."""
        return frozenset(task.function.__module__ for task in self.registry)

    def close(self) -> Awaitable[None]:
        """Closes what was opened for submitting. Without a running loop it is done when this returns; inside one it
        may be awaited. The next submit opens anew."""
        return self.connections.close()


class _Decorator:
    """What `@app.task(…)`, `@app.cron(…)` and `@app.every(…)` answer."""

    def __init__(
        self, app: Mainspring, name: str | None, fields: dict[str, object], schedule: dict[str, object] | None
    ) -> None:
        self._app = app
        self._name = name
        self._fields = fields
        self._schedule = schedule

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[object, Never, R]], /
    ) -> Task[P, Coroutine[object, Never, R], R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, R]: ...

    def __call__(self, function: Callable[P, object], /) -> Task[P, object, object]:
        fields, schedule = dict(self._fields), None
        if self._schedule is not None:
            fields, schedule = declare(self._schedule, fields)
        task: Task[P, object, object] = self._app.registry.add(function, name=self._name, **fields)
        task.submitter = self._app.connections
        if schedule is not None:
            self._app.schedules.append(schedule.of(task.name, task.document, function.__module__))
            refuse_duplicates(self._app.schedules)
        return task


def _known(settings: dict[str, object]) -> dict[str, object]:
    problems = [
        Problem(name, f"Mainspring() knows no such setting{_nearest(name)}")
        for name in settings
        if name not in config.ABOUT
    ]
    if problems:
        raise InvalidInput(problems)
    return {name: value for name, value in settings.items() if value is not None}


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, config.ABOUT, n=1)
    return f"; did you mean {close[0]}=?" if close else f"; it takes {', '.join(config.ABOUT)}"
