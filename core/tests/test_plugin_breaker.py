from fallow_core.plugins.breaker import Breaker


def test_pauses_double_up_to_a_minute() -> None:
    breaker, pauses = Breaker(), []
    for _ in range(9):
        breaker = breaker.after_failure("no route", now=100.0)
        pauses.append(breaker.next_try_at - 100.0)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_call_is_allowed_once_the_pause_is_over() -> None:
    breaker = Breaker().after_failure("no route", now=10.0)
    assert not breaker.allows(10.9)
    assert breaker.allows(11.0)


def test_reason_count_and_beginning_are_kept() -> None:
    breaker = Breaker().after_failure("first", now=10.0).after_failure("second", now=20.0)
    assert (breaker.failures, breaker.failing_since, breaker.reason) == (2, 10.0, "second")


def test_a_success_forgets_all() -> None:
    assert Breaker().after_failure("x", now=1.0).after_success() == Breaker()


def test_try_later_waits_its_own_time_and_makes_later_pauses_no_longer() -> None:
    breaker = Breaker()
    for _ in range(20):
        breaker = breaker.after_try_later("standby", 7.5, now=0.0)
    assert breaker.next_try_at == 7.5
    assert breaker.failures == 20
    assert breaker.after_failure("no route", now=0.0).next_try_at == 1.0


def test_broken_stays_broken() -> None:
    breaker = Breaker().after_broken("no such user", now=0.0)
    assert breaker.broken
    assert not breaker.allows(1e12)
