package main

import (
	"context"
	"slices"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "example.com/copilot_go/copilotpb"
)

const (
	apiLevel    = 0
	application = "queue"
)

// copilot answers Fallow for a queue. It makes no decision, and keeps nothing for the caller. The queue is on one node,
// host, and has one of its own there, nodeName.
type copilot struct {
	pb.UnimplementedCopilotServer
	queue    *queue
	readyAt  time.Time
	host     string
	nodeName string
}

// isHere says whether a node is the one that the queue is on.
func (c *copilot) isHere(node *pb.Node) bool {
	return node.GetName() == c.host || slices.Contains(node.GetAddresses(), c.host)
}

func (c *copilot) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{
		Name:            "local_go",
		Version:         "1.0",
		Distribution:    "copilot_go",
		LowestApiLevel:  proto.Int32(apiLevel),
		HighestApiLevel: proto.Int32(apiLevel),
		Hooks:           []string{"report_capacity", "list_tasks", "kill_tasks", "set_cgroup_parent"},
	}, nil
}

// begin says whether a call is to be begun: not while the queue starts, and not when nobody waits for the answer.
func (c *copilot) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	left := time.Until(c.readyAt)
	if left <= 0 {
		return nil
	}
	later, err := status.New(codes.Unavailable, "the queue is starting").
		WithDetails(&pb.TryLater{AfterSeconds: left.Seconds()})
	if err != nil {
		return err
	}
	return later.Err()
}

func (c *copilot) ReportCapacity(ctx context.Context, request *pb.ReportCapacityRequest) (*pb.CapacityReport, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	report := &pb.CapacityReport{
		Capabilities: &pb.Capabilities{
			Cpu:             &pb.ResourceCapability{Honoured: true},
			Memory:          &pb.ResourceCapability{Honoured: true},
			EndsSingleTasks: true,
			EndsGracefully:  true,
		},
		Detail: "a queue of local processes",
	}
	for _, offer := range request.GetOffers() {
		report.Answers = append(report.Answers, c.take(offer))
	}
	tasks, waiting, now := c.queue.snapshot()
	report.Pending = &pb.Pending{Total: message(of(waiting))}
	if waiting > 0 {
		report.Pending.Smallest, report.Pending.Largest = message(of(1)), message(of(1))
	}
	if len(tasks) > 0 {
		report.Applications = []*pb.Application{{Id: application, Name: application, Kind: "processes"}}
	}
	for _, node := range request.GetNodes() {
		if c.isHere(node) {
			report.Rows = append(report.Rows, c.row(node.GetName(), of(len(tasks)), now))
		}
	}
	return report, nil
}

func (c *copilot) row(node string, allocated, now size) *pb.ReportRow {
	return &pb.ReportRow{
		Node:                 node,
		FrameworkNode:        c.nodeName,
		AgeSeconds:           proto.Float64(0),
		State:                pb.NodeState_NODE_STATE_RUNNING,
		AllocatedCpuMilli:    &allocated.cpuMilli,
		AllocatedMemoryBytes: &allocated.memoryBytes,
		InForceCpuMilli:      &now.cpuMilli,
		InForceMemoryBytes:   &now.memoryBytes,
		UnitCpuMilli:         proto.Int64(1),
		UnitMemoryBytes:      proto.Int64(1),
		FloorCpuMilli:        proto.Int64(0),
		FloorMemoryBytes:     proto.Int64(0),
		StartedAgeSeconds:    proto.Float64(time.Since(c.queue.since).Seconds()),
	}
}

func (c *copilot) take(offer *pb.Offer) *pb.OfferAnswer {
	answer := &pb.OfferAnswer{Node: offer.GetNode(), FrameworkNode: offer.GetFrameworkNode()}
	total := offer.GetTotal()
	switch {
	case offer.GetFrameworkNode() != c.nodeName:
		answer.Refusal, answer.Reason = pb.Refusal_REFUSAL_UNKNOWN_NODE, "the queue has one node, "+c.nodeName
	case total == nil || total.CpuMilli == nil || total.MemoryBytes == nil || total.GetCpuMilli() < 0 || total.GetMemoryBytes() < 0:
		answer.Refusal, answer.Reason = pb.Refusal_REFUSAL_BAD_VALUE, "a size has both amounts, and neither is negative"
	case offer.GetTakeBack() != nil:
		answer.Refusal, answer.Reason = pb.Refusal_REFUSAL_BAD_VALUE, "the queue takes nothing back by itself"
	default:
		c.queue.resize(size{total.GetCpuMilli(), total.GetMemoryBytes()})
		answer.Accepted = total
	}
	return answer
}

func (c *copilot) ListTasks(ctx context.Context, request *pb.ListTasksRequest) (*pb.TaskList, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	list := &pb.TaskList{AgeSeconds: proto.Float64(0), Complete: true}
	for _, each := range c.tasksOn(request.GetNode()) {
		listed := &pb.Task{
			Id:                   each.id,
			ApplicationId:        application,
			FrameworkNode:        c.nodeName,
			State:                pb.TaskState_TASK_STATE_RUNNING,
			RequestedCpuMilli:    proto.Int64(taskCPUMilli),
			RequestedMemoryBytes: proto.Int64(taskMemoryBytes),
			AgeSeconds:           proto.Float64(time.Since(each.started).Seconds()),
			Processes:            []*pb.Process{leader(each)},
		}
		if !each.terminating.IsZero() {
			listed.State = pb.TaskState_TASK_STATE_TERMINATING
			listed.TerminatingAgeSeconds = proto.Float64(time.Since(each.terminating).Seconds())
		}
		list.Tasks = append(list.Tasks, listed)
	}
	return list, nil
}

func (c *copilot) KillTasks(ctx context.Context, request *pb.KillTasksRequest) (*pb.KillOutcome, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	signal := syscall.SIGTERM
	if request.GetForce() {
		signal = syscall.SIGKILL
	}
	outcome := &pb.KillOutcome{Answers: map[string]*pb.KillAnswer{}}
	for _, id := range request.GetTaskIds() {
		answer := &pb.KillAnswer{Result: pb.KillResult_KILL_RESULT_TERMINATING}
		found, err := false, error(nil)
		if c.isHere(request.GetNode()) {
			found, err = c.queue.end(id, signal)
		}
		switch {
		case err != nil:
			answer.Result, answer.Reason = pb.KillResult_KILL_RESULT_FAILED, err.Error()
		case !found:
			answer.Result = pb.KillResult_KILL_RESULT_ALREADY_GONE
		}
		outcome.Answers[id] = answer
	}
	return outcome, nil
}

// SetCgroupParent leaves it to Fallow to move the processes: the queue knows no cgroups.
func (c *copilot) SetCgroupParent(ctx context.Context, request *pb.SetCgroupParentRequest) (*pb.Placement, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	placement := &pb.Placement{Reason: "the queue starts its tasks in its own cgroup"}
	for _, each := range c.tasksOn(request.GetNode()) {
		placement.Tasks = append(placement.Tasks, &pb.TaskPlacement{TaskId: each.id, Movable: []*pb.Process{leader(each)}})
	}
	return placement, nil
}

func (c *copilot) Diagnose(context.Context, *pb.DiagnoseRequest) (*pb.DiagnoseResponse, error) {
	finding := &pb.Finding{Subject: "queue", Ok: proto.Bool(true), Detail: "runs local processes"}
	return &pb.DiagnoseResponse{Findings: []*pb.Finding{finding}}, nil
}

func (c *copilot) tasksOn(node *pb.Node) []task {
	if !c.isHere(node) {
		return nil
	}
	tasks, _, _ := c.queue.snapshot()
	return tasks
}

func leader(t task) *pb.Process {
	return &pb.Process{Pid: proto.Int64(int64(t.process.Pid)), StartTicks: &t.startTicks}
}

func message(amount size) *pb.Resources {
	return &pb.Resources{CpuMilli: &amount.cpuMilli, MemoryBytes: &amount.memoryBytes}
}
