"""Cron in words: what the expression means, not how it is spelt."""

from __future__ import annotations

from random import Random

import pytest

from mainspring.core.cron_words import explain
from mainspring.core.errors import InvalidInput
from tests.unit.core.cron_samples import expression

SENTENCES = {
    "* * * * *": "Every minute",
    "*/15 * * * *": "Every 15 minutes",
    "0 * * * *": "Every hour",
    "@hourly": "Every hour",
    "0 */2 * * *": "Every 2 hours",
    "0 9 * * mon-fri": "At 09:00, on Monday to Friday",
    "0,30 9,17 * * *": "At 09:00, 09:30, 17:00 and 17:30",
    "*/10 9-17 * * 1-5": "Every 10 minutes from 09:00 to 17:59, on Monday to Friday",
    "5 * * * *": "At minute 5 of every hour",
    "5,6,7,40 */6 * * *": "At minutes 5 to 7 and 40 of every 6 hours",
    "0 8-18 * * *": "On the hour from 08:00 to 18:59",
    "0 0 1 1 *": "At 00:00, on day 1 of the month, in January",
    "0 0 L * *": "At 00:00, on the last day of the month",
    "0 0 L-2 * *": "At 00:00, on the day 2 before the last of the month",
    "0 0 15W,LW * *": "At 00:00, on the weekday nearest to day 15 and the last weekday (Monday to Friday) of the month",
    "0 0 1,15 * fri": "At 00:00, on days 1 and 15 of the month or on Friday",
    "0 0 */2 * fri": "At 00:00, on days 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 and 31 of the month if it is Friday",
    "0 12 * 6-8,12 mon#1,5L": "At 12:00, on the first Monday of the month and the last Friday of the month, in June to August and December",
    "0 0 * * 0,6": "At 00:00, on Saturday and Sunday",
}


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text: str) -> None:
    assert explain(text) == SENTENCES[text]


def test_seconds() -> None:
    assert explain("*/10 * * * * *", dialect="seconds") == "Every 10 seconds"
    assert explain("30 0 12 * * *", dialect="seconds") == "At 12:00:30"
    assert explain("5 * * * * *", dialect="seconds") == "At second 5 of every minute"
    assert explain("* 0 12 * * *", dialect="seconds") == "Every second, on the hour in hour 12"


def test_any_expression_has_a_sentence() -> None:
    random = Random(1)
    for _ in range(500):
        text = expression(random)
        try:
            sentence = explain(text)
        except InvalidInput:
            continue
        assert sentence[0].isupper()
        assert "  " not in sentence
