"""Ids sort by their time, say which version they are, and are the same for the same occurrence."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from mainspring.core.ids import derived_id, instant_of_id, occurrence_id, uuid7

INSTANTS = st.integers(0, 4_102_444_800_000_000)
RANDOM = st.binary(min_size=10, max_size=10)


@given(INSTANTS, RANDOM)
def test_an_id_is_a_uuid_of_version_seven_with_its_millisecond(instant: int, chance: bytes) -> None:
    identity = uuid7(instant, chance)
    assert (identity.version, identity.variant) == (7, RFC_4122)
    assert instant_of_id(identity) == instant // 1000 * 1000


@given(INSTANTS, INSTANTS, RANDOM, RANDOM)
def test_ids_of_different_milliseconds_sort_by_time(one: int, two: int, left: bytes, right: bytes) -> None:
    if one // 1000 < two // 1000:
        assert uuid7(one, left) < uuid7(two, right)
        assert uuid7(one, left).bytes < uuid7(two, right).bytes


@given(st.uuids(), INSTANTS)
def test_whoever_fires_an_occurrence_gives_it_the_same_id(job_id: UUID, nominal: int) -> None:
    """A3."""
    identity = occurrence_id(job_id, nominal)
    assert identity == occurrence_id(UUID(bytes=job_id.bytes), nominal)
    assert (identity.version, instant_of_id(identity)) == (7, nominal // 1000 * 1000)


@given(st.uuids(), st.uuids(), INSTANTS, st.integers(1, 10_000_000))
def test_other_jobs_and_other_instants_have_other_ids(job: UUID, other: UUID, nominal: int, distance: int) -> None:
    assert occurrence_id(job, nominal) != occurrence_id(job, nominal + distance)
    if job != other:
        assert occurrence_id(job, nominal) != occurrence_id(other, nominal)


@given(st.uuids(), INSTANTS)
def test_repeats_of_a_request_agree_on_derived_ids(parent: UUID, instant: int) -> None:
    assert derived_id(parent, "trigger", instant) == derived_id(parent, "trigger", instant)
    assert derived_id(parent, "trigger", instant) != derived_id(parent, "replay", instant)
    assert derived_id(parent, "trigger", instant).version == 7


def test_an_instant_before_1970_makes_the_smallest_id_there_is() -> None:
    assert instant_of_id(uuid7(-1, bytes(10))) == 0
    assert instant_of_id(occurrence_id(UUID(int=1), -5_000_000)) == 0
