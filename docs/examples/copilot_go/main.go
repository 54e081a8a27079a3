// Command copilot_go is a copilot of Fallow in Go: its framework is a queue of local processes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "example.com/copilot_go/copilotpb"
)

const (
	largestMessage = 64 << 20
	grace          = 3 * time.Second
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	socket := flag.String("socket", "", "path of the socket, in a directory of its own")
	host := flag.String("node", "", "name or address of the node that this is (default: the host's name)")
	starting := flag.Duration("starting", 0, "how long the queue takes to start")
	flag.Parse()
	if *socket == "" {
		return errors.New("-socket is missing")
	}
	if *host == "" {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		*host = name
	}
	listener, err := listen(*socket)
	if err != nil {
		return err
	}
	queue := newQueue()
	defer queue.endAll()
	server := grpc.NewServer(grpc.MaxRecvMsgSize(largestMessage), grpc.MaxSendMsgSize(largestMessage))
	pb.RegisterCopilotServer(server, &copilot{
		queue:    queue,
		readyAt:  time.Now().Add(*starting),
		host:     *host,
		nodeName: "local",
	})
	healthy := health.NewServer()
	healthy.SetServingStatus(pb.Copilot_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, healthy)

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-ended
		healthy.Shutdown()
		time.AfterFunc(grace, server.Stop)
		server.GracefulStop()
	}()
	fmt.Println("serving at", *socket)
	go shell(queue, os.Stdin, os.Stdout)
	return server.Serve(listener)
}

// listen opens the socket for its owner and group, in a directory that is closed to others, in place of one that nobody
// serves.
func listen(path string) (net.Listener, error) {
	directory := filepath.Dir(path)
	if err := os.Mkdir(directory, 0o700); err != nil && !os.IsExist(err) {
		return nil, err
	}
	found, err := os.Stat(directory)
	if err != nil {
		return nil, err
	}
	if found.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("%s is open to others (mode %04o)", directory, found.Mode().Perm())
	}
	if connection, err := net.Dial("unix", path); err == nil {
		connection.Close()
		return nil, fmt.Errorf("somebody serves at %s already", path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	defer syscall.Umask(syscall.Umask(0o117)) // for the socket alone: tasks have the one from before
	return net.Listen("unix", path)
}
