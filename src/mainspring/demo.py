"""Sample tasks for `mainspring up --demo`: something of everything, moving within two seconds."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime

from mainspring import Mainspring, Retry, current_run

app = Mainspring()


@app.every("1s", name="heartbeat", queue="demo")
async def heartbeat() -> str:
    """Quick: shows that the clockwork moves."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@app.every("2s", name="send_mail", queue="mail", payload={"to": "ada@example.com", "subject": "Hello"}, priority=60)
async def send_mail(to: str, subject: str) -> str:
    """Waits a moment, like anything that talks to a network."""
    run = current_run()
    run.log.info("connecting", to=to)
    await asyncio.sleep(random.uniform(0.05, 0.3))
    run.log.info("sent", subject=subject)
    return f"sent {subject!r} to {to}"


@app.every("5s", name="flaky_import", queue="demo", retry=Retry(max_attempts=4, initial="1s", factor=2))
def flaky_import() -> int:
    """Fails half the time and is tried again; a synchronous function, so it runs in a thread."""
    time.sleep(0.1)
    if random.random() < 0.5:
        raise ConnectionError("the source did not answer")
    return random.randint(100, 1000)


@app.every("30s", name="report", queue="reports", timeout="1m", overlap="skip")
async def report() -> dict[str, int]:
    """Takes a while and says how far it is."""
    run = current_run()
    pages = 20
    for page in range(1, pages + 1):
        await asyncio.sleep(0.5)
        run.progress(page / pages, f"page {page} of {pages}")
    return {"pages": pages}


@app.cron("* * * * *", name="every_minute", queue="demo", timezone="Europe/Berlin")
async def every_minute() -> str:
    """A cron schedule, each full minute."""
    return f"scheduled at {current_run().scheduled_at:%H:%M:%S}"


@app.every("45s", name="broken", queue="demo", retry=Retry(max_attempts=2, initial="1s"))
def broken() -> None:
    """Never works: ends among the dead letters, where a person can replay or discard it."""
    raise ValueError("this task is here to fail; try `mainspring dead list`")
