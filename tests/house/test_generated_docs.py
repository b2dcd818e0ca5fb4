from __future__ import annotations

import subprocess
import sys

from tests.house.tree import ROOT


def test_what_is_drawn_from_the_code_is_up_to_date() -> None:
    compared = subprocess.run(
        [sys.executable, "tools/generate_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert compared.returncode == 0, (
        f"the code moved on: `make docs` writes these pages anew\n{compared.stdout}{compared.stderr}"
    )
