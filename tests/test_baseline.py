"""How long a run may take after what the baseline took."""

from __future__ import annotations

from reducer.baseline import timeouts_after
from reducer.oracle.observation import Observation, SideName, Step


def ran(side: SideName, seconds: float, timed_out: bool = False) -> Observation:
    step = Step("python test.py", -9 if timed_out else 1, "", "", timed_out, seconds)
    return Observation(side, "/w", None, (), step)


def test_a_run_has_head_room_over_the_slower_side() -> None:
    limits = timeouts_after(ran("paddle", 4.0), ran("torch", 10.0), None)
    assert (limits.of_run(warm=False), limits.of_run(warm=True)) == (80.0, 20.0)
    quick = timeouts_after(ran("paddle", 0.5), ran("torch", 0.5), None)
    assert (quick.of_run(warm=False), quick.of_run(warm=True)) == (15.0, 5.0)


def test_a_hang_is_not_waited_for_as_long_in_a_warm_interpreter() -> None:
    limits = timeouts_after(ran("paddle", 30.0, timed_out=True), ran("torch", 2.0), None)
    assert (limits.of_run(warm=False), limits.of_run(warm=True)) == (16.0, 6.0)
    quick = timeouts_after(ran("paddle", 30.0, timed_out=True), ran("torch", 0.1), None)
    assert quick.of_run(warm=True) == 3.0
    slow = timeouts_after(ran("paddle", 300.0, timed_out=True), ran("torch", 100.0), None)
    assert slow.of_run(warm=True) == 300.0


def test_what_the_user_set_holds_everywhere() -> None:
    limits = timeouts_after(ran("paddle", 9.0, timed_out=True), ran("torch", 1.0), 9.0)
    assert limits.of_run(warm=False) == limits.of_run(warm=True) == 9.0
