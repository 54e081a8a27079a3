package main

import (
	"bytes"
	"errors"
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

// size is an amount of CPU in milli-cores and of memory in bytes.
type size struct {
	cpuMilli    int64
	memoryBytes int64
}

// of is what so many tasks are promised.
func of(tasks int) size {
	return size{int64(tasks) * taskCPUMilli, int64(tasks) * taskMemoryBytes}
}

// task is one process of the queue. It is over once done is closed.
type task struct {
	id          string
	process     *os.Process
	startTicks  int64
	started     time.Time
	terminating time.Time // zero until it was told to end
	done        chan struct{}
}

func (t *task) isOver() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// queue runs shell commands, as many at once as fit into its size. Each method is quick: a call that acts never waits
// long for one that reads.
type queue struct {
	mutex   sync.Mutex
	size    size
	waiting []string
	started int
	tasks   []*task
	since   time.Time
}

func newQueue() *queue {
	return &queue{since: time.Now()}
}

// add queues tasks that run a command.
func (q *queue) add(count int, command string) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for range count {
		q.waiting = append(q.waiting, command)
	}
	q.fill()
}

// clear drops what waits.
func (q *queue) clear() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.waiting = nil
}

// resize sets the size and starts what fits. It ends nothing.
func (q *queue) resize(to size) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.size = to
	q.fill()
}

// fill starts what waits and fits.
func (q *queue) fill() {
	for len(q.waiting) > 0 {
		wanted := of(len(q.alive()) + 1)
		if wanted.cpuMilli > q.size.cpuMilli || wanted.memoryBytes > q.size.memoryBytes {
			return
		}
		command := q.waiting[0]
		q.waiting = q.waiting[1:]
		if err := q.start(command); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func (q *queue) start(line string) error {
	q.started++
	made := &task{id: fmt.Sprintf("task-%d", q.started), started: time.Now(), done: make(chan struct{})}
	command := exec.Command("/bin/sh", "-c", line)
	command.Env = append(os.Environ(), "TASK_ID="+made.id)
	if err := command.Start(); err != nil {
		return fmt.Errorf("%s cannot be started: %w", made.id, err)
	}
	made.process, made.startTicks = command.Process, startTicks(command.Process.Pid)
	q.tasks = append(q.tasks, made)
	go func() {
		_ = command.Wait()
		close(made.done)
		q.mutex.Lock()
		defer q.mutex.Unlock()
		q.fill()
	}()
	return nil
}

// alive are the tasks that hold resources, those that are terminating included.
func (q *queue) alive() []*task {
	kept := make([]*task, 0, len(q.tasks))
	for _, each := range q.tasks {
		if !each.isOver() {
			kept = append(kept, each)
		}
	}
	q.tasks = kept
	return kept
}

// snapshot is what the queue has now: copies of its tasks, how many wait, and its size.
func (q *queue) snapshot() (tasks []task, waiting int, now size) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, each := range q.alive() {
		tasks = append(tasks, *each)
	}
	return tasks, len(q.waiting), q.size
}

// end signals a task; found is false where there is none of this id any more.
func (q *queue) end(id string, signal syscall.Signal) (found bool, err error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, each := range q.alive() {
		if each.id != id {
			continue
		}
		// Safe: a child that was not waited for keeps its id, and os.Process knows whether it was.
		err := each.process.Signal(signal)
		if errors.Is(err, os.ErrProcessDone) {
			return false, nil
		}
		if err == nil && each.terminating.IsZero() {
			each.terminating = time.Now()
		}
		return true, err
	}
	return false, nil
}

// endAll ends every task, for the end of this process.
func (q *queue) endAll() {
	q.clear()
	tasks, _, _ := q.snapshot()
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
