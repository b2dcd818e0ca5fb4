"""The loader of named SQL blocks and the numbered steps of a schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainspring.core.errors import SchemaError
from mainspring.stores.shared import (
    SqlFileError,
    Step,
    check_schema,
    load_queries,
    load_steps,
    pending,
    read_blocks,
    script,
)

TWO_BLOCKS = """-- Everything about claims.

-- name: claim
-- Takes ready runs.
SELECT 1
FROM runs; -- the last line may say why

-- name: give_back
-- Gives them back.
UPDATE runs
   SET state = 0;
"""


def write_steps(folder: Path, **texts: str) -> list[Step]:
    for name, text in texts.items():
        (folder / f"{name.removeprefix('s')}.sql").write_text(text)
    return load_steps(folder)


def test_blocks_keep_their_name_their_description_and_their_sql() -> None:
    claim, give_back = read_blocks(TWO_BLOCKS)
    assert (claim.name, claim.description) == ("claim", "Takes ready runs.")
    assert claim.sql.startswith("SELECT 1\nFROM runs;")
    assert give_back.sql == "UPDATE runs\n   SET state = 0"


def test_a_folder_is_one_set_of_queries(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(TWO_BLOCKS)
    (tmp_path / "b.sql").write_text("-- name: count\n-- Counts.\nSELECT count(*) FROM runs;\n")
    queries = load_queries(tmp_path)
    assert sorted(queries) == ["claim", "count", "give_back"]
    assert queries["count"] == "SELECT count(*) FROM runs"
    assert len(queries) == 3


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;\n-- name: late\n-- What stands before belongs to nobody.\nSELECT 2;",
        "-- name: bare\nSELECT 1;",
        "-- name: empty\n-- Nothing follows.\n",
    ],
)
def test_a_file_written_otherwise_is_refused(text: str) -> None:
    with pytest.raises(SqlFileError):
        read_blocks(text)


def test_two_blocks_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.sql").write_text("-- name: same\n-- Same.\nSELECT 1;")
    with pytest.raises(SqlFileError, match="two SQL blocks"):
        load_queries(tmp_path)


def test_steps_come_in_order_with_their_checksums(tmp_path: Path) -> None:
    steps = write_steps(tmp_path, s0002_more="-- min_program: 2\nSELECT 2;", s0001_initial="SELECT 1;")
    assert [(step.number, step.name, step.min_program) for step in steps] == [
        (1, "0001_initial", 1),
        (2, "0002_more", 2),
    ]
    assert len(steps[0].checksum) == 64
    assert steps[0].checksum != steps[1].checksum


def test_a_gap_in_the_numbers_and_a_strange_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SqlFileError, match="without a gap"):
        write_steps(tmp_path, s0002_more="SELECT 2;")
    with pytest.raises(SqlFileError, match="NNNN_name"):
        write_steps(tmp_path, first="SELECT 1;")


def test_only_what_is_not_applied_is_pending(tmp_path: Path) -> None:
    first, second = write_steps(tmp_path, s0001_initial="SELECT 1;", s0002_more="SELECT 2;")
    assert pending([first, second], {}) == [first, second]
    assert pending([first, second], {first.name: first.checksum}) == [second]
    assert pending([first], {first.name: first.checksum, "0009_of_a_newer_program": "x"}) == []


def test_a_changed_step_is_found_by_its_checksum(tmp_path: Path) -> None:
    (first,) = write_steps(tmp_path, s0001_initial="SELECT 1;")
    with pytest.raises(SchemaError, match="0001_initial was applied with checksum 000000000000"):
        pending([first], {first.name: "0" * 64})


def test_what_a_schema_lacks_is_said_with_the_next_step(tmp_path: Path) -> None:
    first, second = write_steps(tmp_path, s0001_initial="SELECT 1;", s0002_more="SELECT 2;")
    done = {first.name: first.checksum}
    with pytest.raises(SchemaError, match=r"no Mainspring schema yet; run `mainspring migrate up"):
        check_schema([first, second], {}, 0, "a.db")
    with pytest.raises(SchemaError, match="older than this program: 0002_more missing; run `mainspring migrate up`"):
        check_schema([first, second], done, 1, "a.db")
    with pytest.raises(SchemaError, match=r"needs a newer Mainspring: one that brings migration 0003.*upgrade"):
        check_schema([first, second], done, 3, "a.db")
    check_schema([first, second], done | {second.name: second.checksum}, 2, "a.db")


def test_the_script_holds_every_step(tmp_path: Path) -> None:
    first, second = write_steps(tmp_path, s0001_initial="SELECT 1;\n", s0002_more="SELECT 2;\n")
    text = script([first, second], ["BEGIN"], lambda step: [f"INSERT {step.number}", "COMMIT"])
    assert text == (
        f"-- 0001_initial  sha256:{first.checksum}\nBEGIN;\nSELECT 1;\nINSERT 1;\nCOMMIT;\n\n"
        f"-- 0002_more  sha256:{second.checksum}\nBEGIN;\nSELECT 2;\nINSERT 2;\nCOMMIT;\n"
    )
