"""A PySpark job for spark-submit: it shuffles and sums, round after round, until a file appears, and checks each sum.

job.py STOP_FILE. It prints a line a round and fails with the first wrong sum.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession  # type: ignore[import-not-found]

NUMBERS, KEYS = 8, 3
TASK_SECONDS = 0.5


def keyed(number: int) -> tuple[int, int]:
    """The number with its key, after a while."""
    time.sleep(TASK_SECONDS)
    return number % KEYS, number


def main() -> None:
    """Run rounds; the last one begins after the file has appeared."""
    context = SparkSession.builder.appName("sums").getOrCreate().sparkContext
    expected = {key: sum(range(key, NUMBERS, KEYS)) for key in range(KEYS)}
    last = False
    while not last:
        last = Path(sys.argv[1]).exists()
        sums = context.parallelize(range(NUMBERS), NUMBERS).map(keyed).reduceByKey(int.__add__, KEYS).collect()
        assert dict(sums) == expected, sums
        print("round", flush=True)
    context.stop()


if __name__ == "__main__":
    main()
