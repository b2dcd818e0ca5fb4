"""What a test is told of the jobs that were submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """One submitted job. `arguments` are its payload by name, as JSON types; `options` what `.options(…)` said."""

    id: str
    task: str
    arguments: Mapping[str, object]
    options: Mapping[str, object] = field(default_factory=dict)

    def fits(self, task: str | None, arguments: Mapping[str, object]) -> bool:
        """Whether it is of this task and has at least these arguments."""
        if task is not None and self.task != task:
            return False
        return all(name in self.arguments and self.arguments[name] == value for name, value in arguments.items())

    def __str__(self) -> str:
        options = "".join(f" {name}={value!r}" for name, value in self.options.items())
        return f"{self.task}({_listed(self.arguments)}){options}"


def mismatch(wanted: str, arguments: Mapping[str, object], times: str, jobs: Sequence[SubmittedJob]) -> str:
    """What an assertion says that did not find what it wanted."""
    found = "\n".join(f"  {job}" for job in jobs) or "  nothing at all"
    return f"{wanted}({_listed(arguments)}) was to be submitted {times}; submitted was:\n{found}"


def _listed(arguments: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
