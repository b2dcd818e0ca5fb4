from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import gc
from mainspring.app.garbage import collect_seldom
{own}
collect_seldom()
print(*gc.get_threshold(), gc.get_freeze_count() > 1000)
"""


@pytest.mark.parametrize(("own", "said"), [("", "20000 20 20 True"), ("gc.set_threshold(500, 5, 5)", "500 5 5 True")])
def test_garbage_is_looked_for_seldom_unless_the_user_says_how_often(own: str, said: str) -> None:
    program = [sys.executable, "-c", PROGRAM.format(own=own)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said
