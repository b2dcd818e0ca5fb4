"""What the SQL stores share: SQL that lies in files as named blocks, and the numbered steps of a schema.

A file of queries looks like this; every block has a name and one line that tells what it is for:

    -- name: claim
    -- Takes ready runs of some lanes.
    UPDATE runs SET …;

A step is a file `migrations/NNNN_name.sql`. A step that older programs cannot live with says so in a line
`-- min_program: N`: programs whose newest step is older than N refuse the schema from then on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mainspring.core.errors import SchemaError

_HEAD = re.compile(r"^-- name: (?P<name>\S+)[ \t]*$", re.MULTILINE)
_STEP = re.compile(r"(?P<number>\d{4})_[a-z0-9_]+\.sql", re.ASCII)
_MIN_PROGRAM = re.compile(r"^-- min_program: (?P<number>\d+)[ \t]*$", re.MULTILINE)


class SqlFileError(ValueError):
    """A file of SQL is not written as the loader expects: a bug of ours, found at import."""


@dataclass(frozen=True, slots=True)
class Block:
    """One statement with its name and its one line of description."""

    name: str
    description: str
    sql: str


class Queries(Mapping[str, str]):
    """The SQL of every block by its name."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks: dict[str, Block] = {}
        for block in blocks:
            if block.name in self.blocks:
                raise SqlFileError(f"two SQL blocks are named {block.name!r}; rename one")
            self.blocks[block.name] = block

    def __getitem__(self, name: str) -> str:
        return self.blocks[name].sql

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)


@dataclass(frozen=True, slots=True)
class Step:
    """One migration: `name` is the file's without its ending, `checksum` the SHA-256 of its text."""

    number: int
    name: str
    sql: str
    checksum: str
    min_program: int


def load_queries(*paths: Path) -> Queries:
    """Reads the blocks of some files, or of all .sql files of a folder."""
    files = [file for path in paths for file in (sorted(path.glob("*.sql")) if path.is_dir() else [path])]
    return Queries([block for file in files for block in read_blocks(file.read_text("utf-8"), file.name)])


def read_blocks(text: str, source: str = "SQL") -> list[Block]:
    """The blocks of one file's text; what stands before the first may only be comments."""
    heads = list(_HEAD.finditer(text))
    preamble = text[: heads[0].start()] if heads else text
    if any(line.strip() and not line.startswith("--") for line in preamble.splitlines()):
        raise SqlFileError(f"{source}: SQL before the first '-- name: …' line belongs to no block")
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [_read_block(head["name"], text[head.end() : end], source) for head, end in zip(heads, ends, strict=True)]


def load_steps(folder: Path) -> list[Step]:
    """The migrations of a folder in order; their numbers run from 1 without a gap."""
    steps = [_read_step(path) for path in sorted(folder.glob("*.sql"))]
    if [step.number for step in steps] != list(range(1, len(steps) + 1)):
        raise SqlFileError(f"{folder.name}: steps are not numbered 0001, 0002, … without a gap")
    return steps


def pending(steps: Sequence[Step], applied: Mapping[str, str]) -> list[Step]:
    """What is still to be applied; `applied` maps names to checksums. SchemaError where an applied one differs."""
    for step in steps:
        recorded = applied.get(step.name, step.checksum)
        if recorded != step.checksum:
            raise SchemaError(
                f"migration {step.name} was applied with checksum {recorded[:12]}…, but this program brings "
                f"{step.checksum[:12]}…; install the release that made this schema, or restore a backup"
            )
    return [step for step in steps if step.name not in applied]


def check_schema(steps: Sequence[Step], applied: Mapping[str, str], min_program: int, where: str) -> None:
    """Raises SchemaError, with the next step, unless this program can work on the schema that it found."""
    check_program(steps, min_program, where)
    missing = pending(steps, applied)
    if not missing:
        return
    if len(missing) == len(steps):
        raise SchemaError(f"{where} holds no Mainspring schema yet; run `mainspring migrate up --store …` to create it")
    names = ", ".join(step.name for step in missing)
    raise SchemaError(f"the schema of {where} is older than this program: {names} missing; run `mainspring migrate up`")


def check_program(steps: Sequence[Step], min_program: int, where: str) -> None:
    """Raises SchemaError if the schema asks for a newer program than this one."""
    if min_program > len(steps):
        raise SchemaError(
            f"the schema of {where} needs a newer Mainspring: one that brings migration {min_program:04d}, while this "
            f"one ends with {len(steps):04d}; upgrade Mainspring on this machine (`pip install --upgrade mainspring`)"
        )


def script(steps: Sequence[Step], opening: Sequence[str], closing: Callable[[Step], Sequence[str]]) -> str:
    """All steps as one text for a person to read or run: each is a transaction that also says that it was applied."""
    return "\n".join(_scripted(step, opening, closing(step)) for step in steps)


def _scripted(step: Step, opening: Sequence[str], closing: Sequence[str]) -> str:
    parts = [*opening, step.sql, *closing]
    text = "\n".join(part.strip().removesuffix(";") + ";" for part in parts)
    return f"-- {step.name}  sha256:{step.checksum}\n{text}\n"


def _read_block(name: str, body: str, source: str) -> Block:
    description, _, sql = body.lstrip("\n").partition("\n")
    sql = sql.strip().rstrip(";").rstrip()
    if not description.startswith("-- ") or not sql:
        raise SqlFileError(f"{source}: block {name!r} needs one line of description ('-- …') and then its SQL")
    return Block(name, description.removeprefix("-- ").strip(), sql)


def _read_step(path: Path) -> Step:
    named = _STEP.fullmatch(path.name)
    if named is None:
        raise SqlFileError(f"{path.name}: a migration is named NNNN_name.sql")
    sql = path.read_text("utf-8")
    least = _MIN_PROGRAM.search(sql)
    return Step(
        number=int(named["number"]),
        name=path.stem,
        sql=sql,
        checksum=hashlib.sha256(sql.encode()).hexdigest(),
        min_program=int(least["number"]) if least else 1,
    )
