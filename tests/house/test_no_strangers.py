from __future__ import annotations

import re

from tests.house.tree import name_of, project_files, refuse

# Each is put together from pieces, so that this file does not find itself.
PATTERNS = {
    "the host of a package registry": "|".join(
        host + r"\." + top
        for host, top in (
            ("py" + "pi", "org"),
            ("python" + "hosted", "org"),
            ("npm" + "js", "(?:com|org)"),
            ("deb\\.deb" + "ian", "org"),
        )
    ),
    "an option that names a registry": "--(?:extra-)?" + r"index-url[ =]|PIP_" + "INDEX_URL|PIP_EXTRA_" + "INDEX_URL",
    "a folder of one machine": r"(?<![\w.~-])/(?:"
    + "|".join(("wo" + "rk", "ro" + "ot", "fa" + "rm", "home/" + "[a-z]+"))
    + ")/",
    "a key or a password": r"-----BEGIN [A-Z ]*PRIVATE "
    r"KEY-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}\b",
}


def test_no_file_names_a_machine_or_a_registry() -> None:
    found = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for what, pattern in PATTERNS.items():
            found += [f"{name_of(path)}: {what}: {match.group()!r}" for match in re.finditer(pattern, text)]
    refuse(found, "the project is built on other machines than this one, through registries of their own")


def test_the_patterns_find_what_they_are_for() -> None:
    for text in (
        "https://py" + "pi.org/simple",
        "cd /wo" + "rk/here",
        "pip --index" + "-url=x",
        "/home/" + "someone/code",
    ):
        assert any(re.search(pattern, text) for pattern in PATTERNS.values()), text
    for text in ("/network/x", "the roots/of it", "framework/thing"):
        assert not any(re.search(pattern, text) for pattern in PATTERNS.values()), text
