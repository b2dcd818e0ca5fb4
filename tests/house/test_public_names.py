from __future__ import annotations

import mainspring

PUBLIC_NAMES_MAX = 15


def test_the_front_is_small_sorted_and_real() -> None:
    names: list[str] = list(vars(mainspring).get("__all__", ()))
    assert len(names) <= PUBLIC_NAMES_MAX, (
        f"{len(names)} public names: a front of more than {PUBLIC_NAMES_MAX} is not learnt"
    )
    assert names == sorted(names), "public names are sorted, so that a reader and a merge find their place"
    missing = [name for name in names if not hasattr(mainspring, name)]
    assert not missing, f"promised and not there: {missing}"
