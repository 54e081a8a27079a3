"""The hostile programs run as who they say."""

from tests.security.conftest import Attack


def test_a_hostile_program_runs_as_another_user_where_the_tests_run_as_root(attack: Attack, attacker_uid: int) -> None:
    process = attack("sleeper")
    assert process.stdout is not None
    assert process.stdout.readline() == f"{attacker_uid}\n"
