"""Wrong arguments fail in mypy already; right ones and results have their types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = """
from mainspring import Mainspring, Retry

app = Mainspring()

@app.task
async def plain(to: str) -> int:
    return len(to)

@app.task(queue="mail", timeout="30s", retry=Retry(max_attempts=5))
async def send(to: str, body: str = "") -> int:
    return len(to + body)

@app.task(name="other")
def sync(number: int) -> str:
    return str(number)

@app.cron("* * * * *", timezone="Europe/Berlin")
def nightly() -> None: ...

async def right() -> None:
    reveal_type(await send("a", "b"))
    reveal_type(sync(3))
    reveal_type(await (await plain.submit("a")).result())
    reveal_type((await sync.submit(3)).result_sync(timeout="5s"))
    reveal_type((await send.options(delay="5m").submit("a", body="b")).id)
    await (await send.submit("a")).cancel()
    nightly.submit_sync()

async def wrong() -> None:
    await plain.submit(1)
    await send.submit()
    await send.options(delay="5m").submit("a", subject="b")
    sync.submit_sync("3")
    nightly.submit_sync(1)
"""


def test_mypy_sees_the_arguments_of_submit(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(SOURCE)
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "typed.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()

    lines = SOURCE.splitlines()
    wrong_from = lines.index("async def wrong() -> None:") + 1
    revealed = [line.partition("Revealed type is ")[2].strip('"') for line in told if "Revealed" in line]
    assert [kind.replace("builtins.", "") for kind in revealed] == ["int", "str", "int", "str", "str"]
    errors = {int(line.split(":")[1]) for line in told if ": error:" in line}
    assert errors == set(range(wrong_from + 1, wrong_from + 6)), "\n".join(told)
