package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	taskCPUMilli    = 500
	taskMemoryBytes = 64 << 20
)

// task is one process of the queue. It is over once done is closed.
type task struct {
	id         string
	process    *os.Process
	startTicks int64
	started    time.Time
	ending     time.Time // zero until it was told to end
	done       chan struct{}
}

func (t *task) isOver() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// queue runs one shell command again and again, as many at once as fit into its size. Each method is quick: a call that
// acts never waits long for one that reads.
type queue struct {
	mutex       sync.Mutex
	command     string
	cpuMilli    int64
	memoryBytes int64
	waiting     int
	started     int
	tasks       []*task
	since       time.Time
}

func newQueue(command string, tasks int) *queue {
	return &queue{command: command, waiting: tasks, since: time.Now()}
}

// resize sets the size and starts what fits. It ends nothing.
func (q *queue) resize(cpuMilli, memoryBytes int64) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.cpuMilli, q.memoryBytes = cpuMilli, memoryBytes
	for q.waiting > 0 && q.fitsOneMore() {
		if err := q.start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
}

func (q *queue) fitsOneMore() bool {
	count := int64(len(q.alive()) + 1)
	return count*taskCPUMilli <= q.cpuMilli && count*taskMemoryBytes <= q.memoryBytes
}

func (q *queue) start() error {
	command := exec.Command("/bin/sh", "-c", q.command)
	if err := command.Start(); err != nil {
		return fmt.Errorf("task cannot be started: %w", err)
	}
	q.waiting--
	q.started++
	made := &task{
		id:         fmt.Sprintf("task-%d", q.started),
		process:    command.Process,
		startTicks: startTicks(command.Process.Pid),
		started:    time.Now(),
		done:       make(chan struct{}),
	}
	q.tasks = append(q.tasks, made)
	go func() {
		_ = command.Wait()
		close(made.done)
	}()
	return nil
}

// alive are the tasks that hold resources, those that are ending included.
func (q *queue) alive() []*task {
	kept := q.tasks[:0]
	for _, each := range q.tasks {
		if !each.isOver() {
			kept = append(kept, each)
		}
	}
	q.tasks = kept
	return append([]*task(nil), kept...)
}

// snapshot is what the queue has now.
func (q *queue) snapshot() (tasks []*task, waiting int, cpuMilli, memoryBytes int64) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.alive(), q.waiting, q.cpuMilli, q.memoryBytes
}

// end signals a task; found is false where there is none of this id any more.
func (q *queue) end(id string, signal syscall.Signal) (found bool, err error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, each := range q.alive() {
		if each.id != id {
			continue
		}
		if each.ending.IsZero() {
			each.ending = time.Now()
		}
		// Safe: a child that was not waited for keeps its id, and os.Process knows whether it was.
		err := each.process.Signal(signal)
		if err == os.ErrProcessDone {
			return false, nil
		}
		return true, err
	}
	return false, nil
}

// endAll ends every task, for the end of this process.
func (q *queue) endAll() {
	tasks, _, _, _ := q.snapshot()
	for _, each := range tasks {
		_, _ = q.end(each.id, syscall.SIGKILL)
		<-each.done
	}
}

// startTicks is field 22 of /proc/PID/stat; 0 where it cannot be read.
func startTicks(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name before it may hold anything, but ends with the last ")".
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return 0
	}
	ticks, _ := strconv.ParseInt(fields[19], 10, 64)
	return ticks
}
