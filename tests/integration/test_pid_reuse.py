"""A pid that the kernel has given to another process, in a pid namespace where that can be brought about."""

import os
import subprocess
import sys
import textwrap

import pytest

INSIDE = textwrap.dedent("""
    import pathlib, subprocess, time
    from fallow_core.node import signals
    from fallow_core.node.procfs import PROC_ROOT, read_process
    from fallow_hookspecs import Process
    from fallow_yarn.nm.procfs import ProcessReader

    task = subprocess.Popen(["sleep", "600"])
    seen = read_process(PROC_ROOT, task.pid).process
    reader = ProcessReader(PROC_ROOT, lambda: 1 << 62)  # all processes are old
    assert reader.read_all()[seen.pid].process == seen
    task.kill()
    task.wait()
    time.sleep(0.05)  # the start time is counted in ticks of 10 ms
    pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(seen.pid - 1))
    other = subprocess.Popen(["sleep", "600"])
    assert other.pid == seen.pid, f"the kernel gave pid {other.pid}, not {seen.pid}"
    assert reader.read_all()[seen.pid].process != seen
    for force in (False, True):
        done = signals.terminate([seen], force)
        assert (done.sent, done.gone) == (0, 1), done
    assert other.poll() is None, "a process that was never seen was signalled"
    assert signals.terminate([read_process(PROC_ROOT, other.pid).process], True).sent == 1
    assert other.wait(10) == -9
    print("done")
""")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a pid namespace in which pids can be chosen")
def test_a_pid_that_is_anothers_now_is_never_signalled() -> None:
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", INSIDE]
    run = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert (run.returncode, run.stdout.strip()) == (0, "done"), run.stderr
