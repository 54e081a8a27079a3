// Sends calls as the Go operator of the field does: for each node a new connection, which it never closes, without
// TCP_NODELAY, and each part of a message written by itself. What is written is ready before the time counts.
//
//	operator HOST:PORT
//
// Its first line of input is what to write, in JSON: for each connection the parts. It answers "ready", begins at the
// next line of input, and answers "done" when the last call was answered.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
)

var opened []net.Conn

func main() {
	input := bufio.NewReader(os.Stdin)
	var calls [][][]byte
	line, err := input.ReadBytes('\n')
	check(err)
	check(json.Unmarshal(line, &calls))
	fmt.Println("ready")
	_, err = input.ReadBytes('\n')
	check(err)
	for _, parts := range calls {
		call(os.Args[1], parts)
	}
	fmt.Println("done")
	_, _ = input.ReadBytes('\n') // the connections stay until the end of input
}

func call(address string, parts [][]byte) {
	connection, err := net.Dial("tcp", address)
	check(err)
	opened = append(opened, connection)
	check(connection.(*net.TCPConn).SetNoDelay(false))
	for _, part := range parts {
		_, err = connection.Write(part)
		check(err)
	}
	var length [4]byte
	_, err = io.ReadFull(connection, length[:])
	check(err)
	answer := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err = io.ReadFull(connection, answer)
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
