"""Errors as people read them on standard error, and the exit codes that programs read."""

from __future__ import annotations

import sys

from mainspring.core.errors import (
    CallerError,
    InvalidInput,
    MainspringError,
    NotAllowed,
    NotFound,
    ResultTimeout,
    SchemaError,
    StoreRefuses,
    StoreUnavailable,
    TooLarge,
    WorldError,
)

FAILED = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4
UNREACHABLE = 5
NOT_ALLOWED = 6

# The first kind that fits counts.
_CODES: tuple[tuple[type[MainspringError], int], ...] = (
    (InvalidInput, USAGE),
    (TooLarge, USAGE),
    (NotFound, NOT_FOUND),
    (NotAllowed, NOT_ALLOWED),
    (CallerError, CONFLICT),
    (ResultTimeout, FAILED),
    (WorldError, UNREACHABLE),
    (MainspringError, FAILED),
)
_NEXT_STEPS: tuple[tuple[type[MainspringError], str], ...] = (
    (NotFound, "`job list` and `run list` show what there is."),
    (
        StoreUnavailable,
        "Check --store or --server (`mainspring config show --origin`) and that it runs; then try again.",
    ),
    (StoreRefuses, "Waiting does not mend this: put it right, then try again."),
    (SchemaError, "`mainspring migrate status` shows what is applied."),
)


def exit_code_of(error: Exception) -> int | None:
    """None for an error that is none of ours: a bug, shown with its traceback."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), None)


def tell(error: Exception) -> None:
    """What, why and the next step."""
    title = error.title if isinstance(error, MainspringError) else type(error).__name__
    lines = [f"error: {title}."]
    if isinstance(error, InvalidInput):
        lines += [f"  {problem.pointer or '/'}: {problem.detail}" for problem in error.problems]
    elif str(error):
        lines.append(f"  {error}")
    lines += [f"  {step}" for kind, step in _NEXT_STEPS if isinstance(error, kind)]
    print("\n".join(lines), file=sys.stderr)
