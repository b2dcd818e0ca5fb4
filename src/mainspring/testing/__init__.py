"""For tests of programs that submit jobs: the application on a memory store, its runs carried out inline, time moved by hand.

from mainspring.testing import Sandbox

def test_a_new_customer_is_greeted() -> None:
    with Sandbox(app) as box:
        register("ann@b.c")                              # submits the task `greet`, a day later
        box.assert_submitted(greet, to="ann@b.c")
        box.advance_sync("24h")
        assert box.runs(greet)[0]["status"] == "completed"
"""

from mainspring.testing.sandbox import Sandbox
from mainspring.testing.submitted import SubmittedJob

__all__ = ["Sandbox", "SubmittedJob"]
