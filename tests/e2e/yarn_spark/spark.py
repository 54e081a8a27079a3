"""spark-submit as a child process, and what its log says."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.fallow_process import TIED

EXECUTOR_MB, OVERHEAD_MB, MASTER_MB = 512, 128, 384
JOB = Path(__file__).with_name("job.py")
REGISTERED = re.compile(r"Registered executor .* with ID (\d+)")
LOST = re.compile(r"Lost executor (\d+) on \S+: (.*)")


def home() -> Path | None:
    """Where PyPI's pyspark is installed, with Spark's jars; none if it is not."""
    found = find_spec("pyspark")
    return Path(found.origin).parent if found is not None and found.origin is not None else None


class Job:
    """job.py on a cluster, with `executors` executors of one core; a context manager that kills what still runs.

    The first executor or task whose loss Spark counted as a failure would end it. `dynamic`: it gives back executors
    that it does not need, down to one, and asks for them again.
    """

    def __init__(self, spark: Path, cluster: Cluster, folder: Path, executors: int, *, dynamic: bool) -> None:
        folder.mkdir()
        self.log, self.printed, self.stop = folder / "log.txt", folder / "out.txt", folder / "stop"
        settings = {
            "spark.master": "yarn",
            **(_dynamic(executors) if dynamic else {"spark.executor.instances": executors}),
            "spark.executor.memory": f"{EXECUTOR_MB}m",
            "spark.executor.memoryOverhead": f"{OVERHEAD_MB}m",
            "spark.executor.maxNumFailures": 1,
            "spark.task.maxFailures": 1,
            "spark.driver.memory": "512m",  # the least that it takes
            "spark.driver.host": "127.0.0.1",
            "spark.yarn.am.memory": f"{MASTER_MB - 84}m",
            "spark.yarn.am.memoryOverhead": "84m",
            "spark.yarn.jars": f"local:{spark}/jars/*",
            "spark.yarn.stagingDir": f"file://{folder}/staging",
            "spark.local.dir": f"{folder}/local",
            "spark.ui.enabled": "false",
        }
        self._command = [*TIED, str(spark / "bin" / "spark-submit")]
        self._command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        self._command += [str(JOB), str(self.stop)]
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))},
            "SPARK_HOME": str(spark),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "HADOOP_CONF_DIR": str(cluster.folder / "client"),
            "PYSPARK_PYTHON": sys.executable,
        }

    def __enter__(self) -> Self:
        with self.log.open("wb") as log, self.printed.open("wb") as printed:
            self.process = subprocess.Popen(self._command, stdout=printed, stderr=log, env=self._environment)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, seconds: float) -> int:
        """Have it end after its next round; its exit code."""
        self.stop.touch()
        return self.process.wait(seconds)

    def rounds(self) -> int:
        """How many rounds have given the right sums."""
        assert self.process.poll() in {None, 0}, self.log.read_text()[-4000:]
        return self.printed.read_text().count("round")

    def lines(self, part: str) -> list[str]:
        """The lines of Spark's log with these words in them."""
        return [line for line in self.log.read_text().splitlines() if part in line]

    def lost(self) -> dict[str, str]:
        """The executors that Spark has lost, and why."""
        return dict(LOST.findall(self.log.read_text()))

    def executors(self) -> int:
        """How many executors have registered and were not lost."""
        return len(set(REGISTERED.findall(self.log.read_text())) - set(self.lost()))


def _dynamic(executors: int) -> dict[str, object]:
    """Settings for one to so many executors, of which those with shuffle data stay: there is no shuffle service."""
    prefix = "spark.dynamicAllocation"
    return {
        f"{prefix}.enabled": "true",
        f"{prefix}.shuffleTracking.enabled": "true",
        f"{prefix}.minExecutors": 1,
        f"{prefix}.maxExecutors": executors,
    }
