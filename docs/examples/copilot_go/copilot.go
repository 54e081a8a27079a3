package main

import (
	"context"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "example.com/copilot_go/copilotpb"
)

const apiLevel = 0

// copilot answers Fallow for a queue. It makes no decision, and keeps nothing for the caller.
type copilot struct {
	pb.UnimplementedCopilotServer
	queue    *queue
	readyAt  time.Time
	nodeName string // the framework's own name of its one node
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
	tasks, waiting, cpuMilli, memoryBytes := c.queue.snapshot()
	report.Pending = &pb.Pending{
		Total:    amount(int64(waiting)*taskCPUMilli, int64(waiting)*taskMemoryBytes),
		Smallest: amount(taskCPUMilli, taskMemoryBytes),
		Largest:  amount(taskCPUMilli, taskMemoryBytes),
	}
	if len(request.GetNodes()) > 0 { // the queue is on one node, this host
		report.Rows = []*pb.ReportRow{{
			Node:                 request.GetNodes()[0].GetName(),
			FrameworkNode:        c.nodeName,
			AgeSeconds:           proto.Float64(0),
			State:                pb.NodeState_NODE_STATE_RUNNING,
			AllocatedCpuMilli:    proto.Int64(int64(len(tasks)) * taskCPUMilli),
			AllocatedMemoryBytes: proto.Int64(int64(len(tasks)) * taskMemoryBytes),
			InForceCpuMilli:      proto.Int64(cpuMilli),
			InForceMemoryBytes:   proto.Int64(memoryBytes),
			UnitCpuMilli:         proto.Int64(1),
			UnitMemoryBytes:      proto.Int64(1),
			FloorCpuMilli:        proto.Int64(0),
			FloorMemoryBytes:     proto.Int64(0),
			StartedAgeSeconds:    proto.Float64(time.Since(c.queue.since).Seconds()),
		}}
	}
	return report, nil
}

func (c *copilot) take(offer *pb.Offer) *pb.OfferAnswer {
	answer := &pb.OfferAnswer{Node: offer.GetNode(), FrameworkNode: offer.GetFrameworkNode()}
	total := offer.GetTotal()
	switch {
	case offer.GetFrameworkNode() != c.nodeName:
		answer.Refusal, answer.Reason = pb.Refusal_REFUSAL_UNKNOWN_NODE, "the queue has one node, "+c.nodeName
	case total == nil || total.CpuMilli == nil || total.MemoryBytes == nil || total.GetCpuMilli() < 0 || total.GetMemoryBytes() < 0:
		answer.Refusal, answer.Reason = pb.Refusal_REFUSAL_BAD_VALUE, "a size has both amounts, and neither is negative"
	default:
		c.queue.resize(total.GetCpuMilli(), total.GetMemoryBytes())
		answer.Accepted = total
	}
	return answer
}

func (c *copilot) ListTasks(ctx context.Context, _ *pb.ListTasksRequest) (*pb.TaskList, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	tasks, _, _, _ := c.queue.snapshot()
	list := &pb.TaskList{AgeSeconds: proto.Float64(0), Complete: true}
	for _, each := range tasks {
		listed := &pb.Task{
			Id:                   each.id,
			ApplicationId:        "queue",
			FrameworkNode:        c.nodeName,
			State:                pb.TaskState_TASK_STATE_RUNNING,
			RequestedCpuMilli:    proto.Int64(taskCPUMilli),
			RequestedMemoryBytes: proto.Int64(taskMemoryBytes),
			AgeSeconds:           proto.Float64(time.Since(each.started).Seconds()),
			Processes:            []*pb.Process{leader(each)},
		}
		if !each.ending.IsZero() {
			listed.State = pb.TaskState_TASK_STATE_ENDING
			listed.EndingAgeSeconds = proto.Float64(time.Since(each.ending).Seconds())
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
		answer := &pb.KillAnswer{Result: pb.KillResult_KILL_RESULT_ENDING}
		found, err := c.queue.end(id, signal)
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
func (c *copilot) SetCgroupParent(ctx context.Context, _ *pb.SetCgroupParentRequest) (*pb.Placement, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	tasks, _, _, _ := c.queue.snapshot()
	placement := &pb.Placement{Reason: "the queue starts its tasks in its own cgroup"}
	for _, each := range tasks {
		placement.Tasks = append(placement.Tasks, &pb.TaskPlacement{TaskId: each.id, Movable: []*pb.Process{leader(each)}})
	}
	return placement, nil
}

func (c *copilot) Diagnose(context.Context, *pb.DiagnoseRequest) (*pb.DiagnoseResponse, error) {
	finding := &pb.Finding{Subject: "queue", Ok: proto.Bool(true), Detail: "runs local processes"}
	return &pb.DiagnoseResponse{Findings: []*pb.Finding{finding}}, nil
}

func leader(t *task) *pb.Process {
	return &pb.Process{Pid: proto.Int64(int64(t.process.Pid)), StartTicks: proto.Int64(t.startTicks)}
}

func amount(cpuMilli, memoryBytes int64) *pb.Resources {
	return &pb.Resources{CpuMilli: proto.Int64(cpuMilli), MemoryBytes: proto.Int64(memoryBytes)}
}
