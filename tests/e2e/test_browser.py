"""The printed address shows something that moves, in a real browser: wide and narrow, light and dark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.support.browser import Watched, chromium
from tests.support.program import Program

# The page promises two seconds; a machine that is busy with other tests gets more.
SECONDS = 2.0 * 3
READABLE = 4.5  # contrast that WCAG 2.2 asks of text

# Of each text on the page: its contrast with the nearest ground under it.
CONTRASTS = """() => {
  const channel = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parts = color => color.match(/[\\d.]+/g).map(Number);
  const light = color => {
    const [r, g, b] = parts(color).map(v => channel(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = node => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      const alpha = parts(color)[3];
      if (alpha === undefined || alpha > 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const nodes = [...document.querySelectorAll('h1, h2, p, a, th, td, dt, dd, code, .status, .note')];
  return nodes.filter(node => node.textContent.trim()).map(node => {
    const [a, b] = [light(getComputedStyle(node).color), light(ground(node))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
}"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with Program(tmp_path_factory.mktemp("demo"), "up", "--demo", "--port", "0") as program:
        yield program.wait_ready()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def opened(
    browser: Browser, program: Program, *, width: int = 1200, scheme: Literal["light", "dark"] = "light"
) -> tuple[Page, Watched]:
    page = browser.new_page(viewport=ViewportSize(width=width, height=900), color_scheme=scheme)
    watched = Watched(page)
    page.goto(program.address)
    return page, watched


def test_runs_move_within_two_seconds_of_the_ready_line(browser: Browser, tmp_path: Path) -> None:
    with Program(tmp_path, "up", "--demo", "--port", "0") as program:
        program.wait_ready()
        ready_at = time.monotonic()
        page, watched = opened(browser, program)
        expect(page.locator(".status.completed").first).to_be_visible(timeout=SECONDS * 1000)
        assert time.monotonic() - ready_at < SECONDS
        first = page.locator("#runs ~ table tbody tr time").first.get_attribute("datetime")
        newest = page.locator(f"#runs ~ table tbody tr:first-child time:not([datetime='{first}'])")
        expect(newest).to_be_visible(timeout=SECONDS * 1000)
        page.close()
    assert watched.complaints == []


def test_everything_is_there_and_nothing_comes_from_elsewhere(browser: Browser, demo: Program) -> None:
    page, watched = opened(browser, demo)
    for heading in ("Now", "Next fires", "Last runs", "Queues", "Workers", "Schedulers"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    for heading, words in (
        ("next", "every_minute"),
        ("next", "every 1s"),
        ("runs", "heartbeat"),
        ("queues", "demo"),
        ("workers", "working"),
        ("schedulers", "Z"),
    ):
        expect(page.locator(f"#{heading} ~ table tbody")).to_contain_text(words, timeout=SECONDS * 1000)
    page.close()
    assert watched.complaints == []
    assert len(watched.requests) >= 3
    assert [url for url in watched.requests if not url.startswith(demo.address + "/")] == []


def test_the_page_renews_itself_but_leaves_what_is_selected(browser: Browser, demo: Program) -> None:
    page, watched = opened(browser, demo)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
    marked = page.locator("#main")
    marked.evaluate("node => node.dataset.mark = 'kept'")
    with page.expect_event("request", timeout=10_000) as renewed:
        page.evaluate("setTimeout(() => getSelection().removeAllRanges(), 2500)")
    assert renewed.value.url == demo.address + "/"
    expect(page.locator("#main:not([data-mark])")).to_be_visible(timeout=SECONDS * 1000)
    page.close()
    assert watched.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 320])
def test_it_can_be_read(browser: Browser, demo: Program, width: int, scheme: Literal["light", "dark"]) -> None:
    page, watched = opened(browser, demo, width=width, scheme=scheme)
    expect(page.locator(".status").first).to_be_visible(timeout=SECONDS * 1000)
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 30
    assert min(contrasts) >= READABLE
    red, _, _ = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (red < 128) == (scheme == "dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate(
        "[...document.querySelectorAll('section')].filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)"
    )
    assert cut == []
    page.close()
    assert watched.complaints == []
