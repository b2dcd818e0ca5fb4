"""The Python API from outside: a program of a user beside a running `mainspring up`, with loops, without, and after a fork."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.program import Program, clean_environment

TASKS = """
from mainspring import Mainspring, Retry, current_run

app = Mainspring()

@app.task(queue="mail", timeout="30s", retry=Retry(max_attempts=5))
async def send(to: str, body: str) -> str:
    run = current_run()
    run.progress(0.5, "half way")
    run.log.info("sending")
    return f"sent to {to}"

@app.task(retry=Retry(max_attempts=1))
def fail() -> None:
    raise ValueError("boom")

@app.cron("30 1 * * *", timezone="Europe/Berlin", misfire="once")
def nightly() -> None: ...
"""

PROGRAM = """
import asyncio, json, os
from mainspring import Conflict, InvalidInput, ResultTimeout, RunFailed
from shop import app, fail, send

said = {}

async def with_a_loop():
    said["result"] = await (await send.submit("a@b.c", "hi")).result(timeout=20)
    job = await send.options(delay="1h", priority=80, key="o-7").submit("a@b.c", "hi")
    said["status"] = await job.status()
    try:
        await send.options(key="o-7").submit("a@b.c", "hi")
    except Conflict as error:
        said["conflict"] = job.id in str(error)
    try:
        await job.result(timeout=0.2)
    except TimeoutError as error:
        said["timeout"] = isinstance(error, ResultTimeout)
    await job.cancel()
    said["many"] = [await each.result(timeout=20) for each in await send.submit_many([("a", "1"), ("b", "2")])]
    try:
        await (await fail.submit()).result(timeout=20)
    except RunFailed as error:
        said["failed"] = "boom" in str(error)
    wrong = []
    for call in (
        lambda: send.submit("a"),
        lambda: send.submit("a", 5),
        lambda: send.options(delay=-1).submit("a", "b"),
        lambda: send.options(at="2030-01-01T00:00:00").submit("a", "b"),
        lambda: send.options(cron="61 * * * *").submit("a", "b"),
        lambda: send.options(cron="0 9 * * *", timezone="Mars/Base").submit("a", "b"),
    ):
        try:
            await call()
        except InvalidInput as error:
            wrong.append(error.problems[0].pointer)
    said["wrong"] = wrong
    await app.close()

asyncio.run(with_a_loop())
said["sync"] = send.submit_sync("a", "b").result_sync(timeout=20)

child = os.fork()
if child == 0:
    done = send.submit_sync("child", "b").result_sync(timeout=20) == "sent to child"
    os._exit(0 if done else 1)
said["child"] = os.waitpid(child, 0)[1]
said["parent"] = send.submit_sync("parent", "b").result_sync(timeout=20)
app.close()
said["opened again"] = send.submit_sync("again", "b").result_sync(timeout=20)
app.close()
print(json.dumps(said))
"""


def test_a_users_program(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TASKS)
    (tmp_path / "program.py").write_text(PROGRAM)
    with Program(tmp_path, "up", "shop:app", "--port", "0") as up:
        up.wait_ready()
        told = subprocess.run(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        assert json.loads(told.stdout) == {
            "result": "sent to a@b.c",
            "status": "scheduled",
            "conflict": True,
            "timeout": True,
            "many": ["sent to a", "sent to b"],
            "failed": True,
            "wrong": ["/payload/body", "/payload/body", "/delay", "/at", "/cron", "/timezone"],
            "sync": "sent to a",
            "child": 0,
            "parent": "sent to parent",
            "opened again": "sent to again",
        }
        runs = up.get("/v1/runs?task=send&status=completed")["items"]
        assert isinstance(runs, list)
        assert {(run["queue"], run["max_attempts"], run["progress"]["message"]) for run in runs} == {
            ("mail", 5, "half way")
        }
        declared = up.get("/v1/jobs?task=nightly")["items"]
        assert isinstance(declared, list)
        assert [(job["cron"], job["timezone"], job["kind"]) for job in declared] == [
            ("30 1 * * *", "Europe/Berlin", "recurring")
        ]
        assert up.stop() == 0
