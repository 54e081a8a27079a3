package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// shell is where the users of the queue are: it reads a command a line, and answers each in one line.
//
//	run COUNT COMMAND   queue so many tasks that run a shell command
//	tasks               the ids of the tasks that hold resources
//	size                the size now, in milli-cores and bytes
//	resize CPU MEMORY   set the size
//	clear               drop what waits
func shell(q *queue, in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fmt.Fprintln(out, answer(q, strings.SplitN(strings.TrimSpace(lines.Text()), " ", 3)))
	}
}

func answer(q *queue, words []string) string {
	switch {
	case words[0] == "run" && len(words) == 3:
		count, err := strconv.Atoi(words[1])
		if err != nil || count < 0 {
			return "not a count: " + words[1]
		}
		q.add(count, words[2])
		return "ok"
	case words[0] == "tasks":
		tasks, _, _ := q.snapshot()
		ids := make([]string, 0, len(tasks))
		for _, each := range tasks {
			ids = append(ids, each.id)
		}
		return strings.Join(ids, " ")
	case words[0] == "size":
		_, _, now := q.snapshot()
		return fmt.Sprint(now.cpuMilli, " ", now.memoryBytes)
	case words[0] == "resize" && len(words) == 3:
		cpuMilli, err := strconv.ParseInt(words[1], 10, 64)
		memoryBytes, other := strconv.ParseInt(words[2], 10, 64)
		if err != nil || other != nil {
			return "not a size: " + words[1] + " " + words[2]
		}
		q.resize(size{cpuMilli, memoryBytes})
		return "ok"
	case words[0] == "clear":
		q.clear()
		return "ok"
	}
	return "known are: run COUNT COMMAND, tasks, size, resize CPU MEMORY, clear"
}
