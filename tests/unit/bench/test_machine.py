from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from mainspring.bench import machine


def test_a_family_is_a_process_with_all_its_descendants() -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        family = machine.family(parent.pid)
        assert family[0] == parent.pid
        assert len(family) == 2
        assert machine.parent_of(family[1]) == parent.pid
        parent.communicate(b"\n")
    assert machine.cpu_seconds(family) == 0.0, "who is gone uses nothing"


def test_cpu_seconds_grow_with_work() -> None:
    before, own = machine.cpu_seconds([os.getpid()]), time.process_time()
    while time.process_time() - own < 0.05:
        pass
    assert machine.cpu_seconds([os.getpid()]) > before


def test_a_flush_takes_time_and_leaves_nothing_behind(tmp_path: Path) -> None:
    assert machine.flush_milliseconds(tmp_path) >= 0.0
    assert list(tmp_path.iterdir()) == []


def test_versions_name_what_figures_depend_on() -> None:
    assert {"python", "system", "mainspring"} <= machine.versions().keys()
