"""A real browser to look at the pages with: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

EXECUTABLE = "MAINSPRING_TEST_CHROMIUM"
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class BrowserMissing(RuntimeError):
    def __init__(self) -> None:
        super().__init__(f"no Chromium on this machine: `make browser` installs it, or name one in {EXECUTABLE}")


@contextmanager
def chromium() -> Iterator[Browser]:
    path = os.environ.get(EXECUTABLE) or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise BrowserMissing
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_QUIET))
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """What a page asked for and complained about while it was open."""

    def __init__(self, page: Page) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", self._requested)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.complaints.append(f"{request.url}: {request.failure}"))

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")
