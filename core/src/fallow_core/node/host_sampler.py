"""Samples the use of this host, and the part of it that is batch."""

import math
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fallow_core.errors import SampleError
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.node.batch_cpu import BatchCpu, next_batch_cpu
from fallow_core.node.process_files import ProcessFiles
from fallow_core.node.process_tree import batch_processes, self_and_ancestors
from fallow_core.node.procfs import (
    PROC_ROOT,
    TICKS_PER_SECOND,
    CpuCounters,
    ProcessStat,
    read_cpu,
    read_memory,
)
from fallow_core.node.task_usage import BatchPass
from fallow_hookspecs import Process, ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class _CpuReading:
    at: float
    counters: CpuCounters
    batch: BatchCpu


class HostSampler:
    """Reads the host; it keeps the previous reading, and which processes are batch.

    `clock` returns monotonic seconds, `cpu` the counters of the host for a pass over its processes.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        proc_root: Path = PROC_ROOT,
        cpu: Callable[[Mapping[int, ProcessStat]], CpuCounters] | None = None,
    ) -> None:
        self._clock = clock
        self._proc_root = proc_root
        self._files = ProcessFiles(proc_root)
        self._counters = cpu or (lambda _processes: read_cpu(proc_root))
        self._cpu_before: _CpuReading | None = None
        self._batch: frozenset[Process] = frozenset()
        self._missing: dict[ResourceName, str] = {}
        self._pass = BatchPass()

    @property
    def batch(self) -> BatchPass:
        """The batch processes of the newest sample."""
        return self._pass

    @property
    def missing(self) -> Mapping[ResourceName, str]:
        """The resources that the newest sample lacks, with the reasons."""
        return self._missing

    def close(self) -> None:
        """Close the open files."""
        self._files.close()

    def sample(self, daemons: Collection[Process] = ()) -> NodeSample:
        """The present use of the host; all processes below `daemons` are batch.

        CPU use is measured since the sample before, so the first sample has none. A resource whose reading fails or
        makes no sense is `None`, with the reason in `missing`; the other resource is not affected.
        """
        self._missing = {}
        try:
            processes = self._files.stats()
        except SampleError as error:
            self._missing = {"cpu": str(error), "memory": str(error)}
            return NodeSample()
        own = self_and_ancestors(processes, os.getpid())
        # If a plugin took init or the service manager for its daemon, all processes of the host would be batch.
        self._batch = batch_processes(processes, [each for each in daemons if each.pid not in own], self._batch)
        self._files.keep(self._batch)
        self._pass = BatchPass(at=self._clock(), processes=processes, batch=self._batch)
        return NodeSample(
            cpu=self._unless_missing("cpu", lambda: self._cpu(processes)),
            memory=self._unless_missing("memory", self._memory),
        )

    def _unless_missing(self, resource: ResourceName, read: Callable[[], Usage]) -> Usage | None:
        try:
            return read()
        except SampleError as error:
            self._missing[resource] = str(error)
            return None

    def _cpu(self, processes: Mapping[int, ProcessStat]) -> Usage:
        counters = self._counters(processes)
        at = self._clock()
        before = self._cpu_before
        if before is not None and at <= before.at:
            raise SampleError(f"CPU use needs time between two readings; the clock went from {before.at} to {at}")
        # Stored before anything can fail: a counter that was reset must not make every later reading fail too.
        batch = BatchCpu(processes=processes, batch=self._batch)
        self._cpu_before = _CpuReading(at=at, counters=counters, batch=batch)
        if before is None:
            raise SampleError("CPU use needs two readings, and this was the first")
        busy_ticks, stolen_ticks = _ticks(before.counters, counters)
        elapsed = at - before.at
        batch = next_batch_cpu(before.batch, processes, self._batch, elapsed)
        self._cpu_before = _CpuReading(at=at, counters=counters, batch=batch)
        milli_per_tick = 1000 / (TICKS_PER_SECOND * elapsed)
        milli = {process: rate * 1000 / TICKS_PER_SECOND for process, rate in batch.rates.items()}
        self._pass = replace(self._pass, cpu_milli=milli)
        capacity = counters.online_cpus * 1000
        used = min(capacity, math.ceil(busy_ticks * milli_per_tick))
        stolen = min(capacity - used, math.ceil(stolen_ticks * milli_per_tick))
        return Usage(
            measured_at=at,
            capacity=capacity,
            used=used,
            batch_used=min(used, math.floor(batch.used_ticks * milli_per_tick)),
            unusable={"stolen": stolen} if stolen else {},
            terms={
                "online_cpus": counters.online_cpus,
                "elapsed_milliseconds": round(elapsed * 1000),
                "ticks_per_second": TICKS_PER_SECOND,
                "busy_ticks": busy_ticks,
                "stolen_ticks": stolen_ticks,
                "batch_ticks": round(batch.used_ticks),
                "batch_processes": len(self._batch),
            },
        )

    def _memory(self) -> Usage:
        memory = read_memory(self._proc_root)
        memory_bytes = {process: self._files.memory_bytes(process) for process in self._batch}
        self._pass = replace(self._pass, memory_bytes=memory_bytes)
        batch_bytes = sum(memory_bytes.values())
        used = memory.total_bytes - memory.unused_bytes
        return Usage(
            measured_at=self._clock(),
            capacity=memory.total_bytes,
            used=used,
            batch_used=min(used, batch_bytes),
            unusable={"behind watermarks": memory.unusable_bytes} if memory.unusable_bytes else {},
            terms={
                "memory_total_bytes": memory.total_bytes,
                "memory_unused_bytes": memory.unused_bytes,
                "memory_behind_watermarks_bytes": memory.unusable_bytes,
                "memory_in_cpu_lists_bytes": memory.in_cpu_lists_bytes,
                "batch_memory_bytes": batch_bytes,
                "batch_processes": len(self._batch),
            },
        )


def _ticks(before: CpuCounters, now: CpuCounters) -> tuple[int, int]:
    """Busy and stolen ticks since the reading before. Kernels are known whose stolen time falls now and then: the
    counter of a virtual machine that was moved. That is no stolen time.
    """
    if now.online_cpus != before.online_cpus:
        raise SampleError(
            f"the number of online CPUs went from {before.online_cpus} to {now.online_cpus}; "
            "CPU use needs two readings with the same number"
        )
    if now.busy_ticks < before.busy_ticks:
        raise SampleError(f"CPU time of the host went backwards, from {before.busy_ticks} to {now.busy_ticks} ticks")
    return now.busy_ticks - before.busy_ticks, max(now.stolen_ticks - before.stolen_ticks, 0)
