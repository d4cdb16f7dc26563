// Readiness of containers without a readiness probe: such a container is ready when it listens. A kubelet takes it for
// ready when it runs; tests would then have to wait until its ports are open. The listening sockets are those of the
// whole Pod, because its containers share one network namespace.

package nodes

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"
)

// sockets are the ports on which a network namespace listens, such as "TCP 3000".
type sockets map[string]bool

// The states of /proc/net: LISTEN of TCP, and the state of an unconnected UDP socket.
const (
	tcpListening = "0A"
	udpBound     = "07"
)

// silentWait is how long a container without declared ports may run without listening. It is ready then: it may be
// a client.
const silentWait = 3 * time.Second

// listens reports whether the container listens on its ports. Until a process is ready for the first time, the sockets
// must be the same at two checks, because a program opens them one after the other. Only the Pod's loop calls it.
func (c *container) listens(pid int, startedAt time.Time) bool {
	if c.checked != pid {
		c.checked, c.sockets, c.wasReady = pid, nil, false
	}
	before := c.sockets
	c.sockets = listening(pid)
	if len(c.spec.Ports) == 0 && time.Since(startedAt) > silentWait {
		return true
	}
	if len(c.sockets) == 0 || !c.wasReady && !maps.Equal(before, c.sockets) {
		return false
	}
	for _, port := range c.spec.Ports {
		if !c.sockets[fmt.Sprintf("%s %d", port.Protocol, port.ContainerPort)] {
			return false
		}
	}
	c.wasReady = true
	return true
}

// listening returns the listening sockets in the network namespace of a process.
func listening(pid int) sockets {
	found := sockets{}
	for _, table := range []struct{ file, protocol, state string }{
		{"tcp", "TCP", tcpListening}, {"tcp6", "TCP", tcpListening}, {"udp", "UDP", udpBound}, {"udp6", "UDP", udpBound},
	} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table.file))
		if err != nil {
			// The process has ended, or the kernel has no IPv6.
			continue
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if port, ok := listeningPort(lines.Text(), table.state); ok {
				found[fmt.Sprintf("%s %d", table.protocol, port)] = true
			}
		}
		file.Close()
	}
	return found
}

// listeningPort parses a line of /proc/net/tcp or udp: "0: 00000000:0BB8 00000000:0000 0A ...".
func listeningPort(line, state string) (uint64, bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[3] != state {
		return 0, false
	}
	_, hex, _ := strings.Cut(fields[1], ":")
	port, err := strconv.ParseUint(hex, 16, 16)
	return port, err == nil
}
