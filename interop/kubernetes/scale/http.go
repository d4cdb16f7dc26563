// A minimal HTTP/1.1 client: prepared requests, one at a time on a keep-alive connection. It takes far less CPU than
// net/http, and the machine is shared with what is measured.

package scale

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

const (
	connectLimit = 2 * time.Second
	// answerLimit is how long a response may take.
	answerLimit = 5 * time.Second
	headersMax  = 100
)

// response is what of a response matters here.
type response struct {
	status int
	// backend is the first letter of the header `Backend`, 0 without.
	backend byte
	// closes is whether the server closes the connection after the response.
	closes bool
}

func (r response) String() string {
	if r.backend == 0 {
		return strconv.Itoa(r.status)
	}
	return fmt.Sprintf("%d from backend %c", r.status, r.backend)
}

// errUnanswered is a kept connection that ended before the first byte of a response: a client repeats its request.
var errUnanswered = errors.New("the connection was closed before the response")

// connection is a keep-alive connection to an address. It is opened by the first request, and again when it was closed.
type connection struct {
	address string
	socket  net.Conn
	reader  *bufio.Reader
	// closed counts kept connections that the server closed: after a response that announced it, or without.
	closed int
}

func newConnection(address string) *connection {
	return &connection{address: address, reader: bufio.NewReaderSize(nil, 4096)}
}

// ask sends a request without a body and returns the response.
func (c *connection) ask(request []byte) (response, error) {
	kept := c.socket != nil
	answer, err := c.once(request)
	if kept && errors.Is(err, errUnanswered) {
		c.closed++
		answer, err = c.once(request)
	}
	return answer, err
}

func (c *connection) once(request []byte) (response, error) {
	if c.socket == nil {
		socket, err := net.DialTimeout("tcp", c.address, connectLimit)
		if err != nil {
			return response{}, err
		}
		c.socket = socket
		c.reader.Reset(socket)
	}
	answer, err := c.exchange(request)
	if err != nil || answer.closes {
		if err == nil {
			c.closed++
		}
		c.close()
	}
	return answer, err
}

func (c *connection) exchange(request []byte) (response, error) {
	if err := c.socket.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return response{}, err
	}
	if _, err := c.socket.Write(request); err != nil {
		return response{}, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	if _, err := c.reader.Peek(1); err != nil {
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			return response{}, fmt.Errorf("no response within %s", answerLimit)
		}
		return response{}, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	return readResponse(c.reader)
}

func (c *connection) close() {
	if c.socket != nil {
		// Nothing is lost: the last response was read, or has failed.
		_ = c.socket.Close()
		c.socket = nil
	}
}

// readResponse reads a whole response to a GET request, and discards its body.
func readResponse(reader *bufio.Reader) (response, error) {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return response{}, err
	}
	if len(line) < 13 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return response{}, fmt.Errorf("%q is not the first line of a response", line)
	}
	r := response{}
	if r.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return response{}, fmt.Errorf("%q has no status", line)
	}
	length, chunked, err := r.readHeaders(reader)
	if err != nil {
		return response{}, err
	}
	switch {
	case chunked:
		err = discardChunks(reader)
	case length >= 0:
		_, err = reader.Discard(length)
	case r.status != 204 && r.status != 304:
		err = errors.New("the response has no length")
	}
	return r, err
}

// readHeaders returns the length of the body, -1 without one, and whether the body has chunks.
func (r *response) readHeaders(reader *bufio.Reader) (length int, chunked bool, err error) {
	length = -1
	for range headersMax {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case len(name) == 0:
			return length, chunked, nil
		case is(name, "backend") && len(value) > 0:
			r.backend = value[0]
		case is(name, "content-length"):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return 0, false, fmt.Errorf("Content-Length %q is not a number", value)
			}
		case is(name, "transfer-encoding"):
			chunked = is(value, "chunked")
		case is(name, "connection"):
			r.closes = is(value, "close")
		}
	}
	return 0, false, fmt.Errorf("the response has more than %d headers", headersMax)
}

func is(text []byte, other string) bool { return bytes.EqualFold(text, []byte(other)) }

func discardChunks(reader *bufio.Reader) error {
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		digits, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(";"))
		size, err := strconv.ParseUint(string(digits), 16, 31)
		if err != nil {
			return fmt.Errorf("%q is not the size of a chunk", line)
		}
		// The line break after a chunk; for the last one, the end of trailers, of which there are none.
		if _, err := io.CopyN(io.Discard, reader, int64(size)+2); err != nil {
			return err
		}
		if size == 0 {
			return nil
		}
	}
}
