package nodes

import "testing"

func TestListeningPort(t *testing.T) {
	for _, c := range []struct {
		line, state string
		port        uint64
		listens     bool
	}{
		{"   0: 00000000:0BB8 00000000:0000 0A 00000000:00000000", tcpListening, 3000, true},
		{"   1: 0100007F:0BB8 0100007F:C350 01 00000000:00000000", tcpListening, 0, false},
		{"   2: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 07 0", udpBound, 8080, true},
		{"  sl  local_address rem_address   st tx_queue", tcpListening, 0, false},
	} {
		port, listens := listeningPort(c.line, c.state)
		if port != c.port || listens != c.listens {
			t.Errorf("%q: port %d, %v", c.line, port, listens)
		}
	}
}
