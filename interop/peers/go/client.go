package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type httpClient struct {
	http.Client
	base  string
	large []byte
	dials atomic.Int32
}

func ask(o options) {
	large, err := os.ReadFile(o.body)
	must(err)
	c := &httpClient{base: o.base, large: large}
	protocols := new(http.Protocols)
	transport := &http.Transport{Protocols: protocols}
	if strings.HasPrefix(o.base, "https:") {
		protocols.SetHTTP2(true)
		roots := x509.NewCertPool()
		pem, err := os.ReadFile(o.ca)
		must(err)
		roots.AppendCertsFromPEM(pem)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	} else {
		protocols.SetUnencryptedHTTP2(true)
	}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c.dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	c.Transport = transport
	c.Timeout = 10 * time.Second
	runCases(o.cases, map[string]func() error{
		"get":          func() error { return c.expect("GET", "/small", nil, 200, []byte("hello\n")) },
		"get-5m":       func() error { return c.expect("GET", "/large", nil, 200, large) },
		"post-5m":      func() error { return c.expect("POST", "/echo", bytes.NewReader(large), 200, large) },
		"head":         func() error { return c.expect("HEAD", "/small", nil, 200, nil) },
		"204":          func() error { return c.expect("GET", "/204", nil, 204, nil) },
		"304":          func() error { return c.expect("GET", "/304", nil, 304, nil) },
		"parallel-100": c.parallel,
		"trailers":     c.trailers,
		"fields-8k":    c.fields,
		"early":        c.early,
		"cancel":       c.cancel,
		"goaway":       c.goaway,
		"slow-reader":  c.slowReader,
	})
}

func (c *httpClient) expect(method, path string, body io.Reader, status int, want []byte) error {
	request, err := http.NewRequest(method, c.base+path, body)
	if err != nil {
		return err
	}
	_, err = c.send(request, status, want)
	return err
}

func (c *httpClient) send(request *http.Request, status int, want []byte) (*http.Response, error) {
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("after %d bytes: %w", len(got), err)
	}
	if response.StatusCode != status || response.ProtoMajor != 2 {
		return nil, fmt.Errorf("status %d over %s: %.100q", response.StatusCode, response.Proto, got)
	}
	if request.Method == "HEAD" && response.ContentLength != 6 {
		return nil, fmt.Errorf("content-length %d", response.ContentLength)
	}
	if sha256.Sum256(got) != sha256.Sum256(want) {
		return nil, fmt.Errorf("%d bytes that differ from the %d expected", len(got), len(want))
	}
	return response, nil
}

// many sends count requests, at most `at` at the same time, and counts those that failed.
func (c *httpClient) many(count, at int) error {
	slots := make(chan struct{}, at)
	var all sync.WaitGroup
	var failed atomic.Int32
	var first atomic.Value
	for range count {
		slots <- struct{}{}
		all.Add(1)
		go func() {
			defer all.Done()
			if err := c.expect("GET", "/wait?ms=50", nil, 200, []byte("hello\n")); err != nil {
				failed.Add(1)
				first.CompareAndSwap(nil, err.Error())
			}
			<-slots
		}()
	}
	all.Wait()
	if failed.Load() > 0 {
		return fmt.Errorf("%d of %d failed: %v", failed.Load(), count, first.Load())
	}
	return nil
}

// sameConnection runs what must not open a connection, after one request that may.
func (c *httpClient) sameConnection(then func() error) error {
	if err := c.expect("GET", "/small", nil, 200, []byte("hello\n")); err != nil {
		return err
	}
	before := c.dials.Load()
	if err := then(); err != nil {
		return err
	}
	if more := c.dials.Load() - before; more > 0 {
		return fmt.Errorf("%d more connections", more)
	}
	return nil
}

func (c *httpClient) parallel() error {
	return c.sameConnection(func() error { return c.many(100, 100) })
}

func (c *httpClient) goaway() error {
	report("goaway", "started", "")
	return c.many(200, 10)
}

func (c *httpClient) trailers() error {
	request, _ := http.NewRequest("GET", c.base+"/trailers", nil)
	request.Header.Set("TE", "trailers")
	response, err := c.send(request, 200, []byte("hello\n"))
	if err == nil && response.Trailer.Get("X-Sum") != "6" {
		err = fmt.Errorf("trailers %v", response.Trailer)
	}
	return err
}

func (c *httpClient) fields() error {
	request, _ := http.NewRequest("GET", c.base+"/fields", nil)
	var want strings.Builder
	for n := range 40 {
		name, value := fmt.Sprintf("x-f-%02d", n), strings.Repeat(fmt.Sprintf("%02d", n), 75)
		request.Header.Set(name, value)
		fmt.Fprintf(&want, "%s: %s\n", name, value)
	}
	var cookies []string
	for n := range 20 {
		cookies = append(cookies, fmt.Sprintf("c%02d=%s", n, strings.Repeat("v", 96)))
	}
	request.Header.Set("Cookie", strings.Join(cookies, "; "))
	fmt.Fprintf(&want, "cookie: %s\n", strings.Join(cookies, "; "))
	_, err := c.send(request, 200, []byte(want.String()))
	return err
}

// slowly is a body that does not end before an early response has had time to arrive.
type slowly struct{ left int }

func (s *slowly) Read(into []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(5 * time.Millisecond)
	n := min(len(into), s.left, 16384)
	s.left -= n
	return n, nil
}

func (c *httpClient) early() error {
	return c.sameConnection(func() error {
		body := &slowly{left: 5_000_000}
		if err := c.expect("POST", "/early", body, 200, []byte("early\n")); err != nil {
			return err
		}
		return c.expect("GET", "/small", nil, 200, []byte("hello\n"))
	})
}

func (c *httpClient) cancel() error {
	return c.sameConnection(func() error {
		for range 5 {
			ctx, cancel := context.WithCancel(context.Background())
			request, _ := http.NewRequestWithContext(ctx, "GET", c.base+"/large", nil)
			response, err := c.Do(request)
			if err != nil {
				cancel()
				return err
			}
			_, err = io.ReadFull(response.Body, make([]byte, 100_000))
			cancel()
			response.Body.Close()
			if err != nil {
				return err
			}
			if err := c.expect("GET", "/small", nil, 200, []byte("hello\n")); err != nil {
				return fmt.Errorf("after the cancel: %w", err)
			}
		}
		return nil
	})
}

func (c *httpClient) slowReader() error {
	return c.sameConnection(func() error {
		response, err := c.Get(c.base + "/large")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		var got bytes.Buffer
		for {
			_, err := io.CopyN(&got, response.Body, 250_000)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond)
			if err := c.expect("GET", "/small", nil, 200, []byte("hello\n")); err != nil {
				return fmt.Errorf("beside the slow response: %w", err)
			}
		}
		if !bytes.Equal(got.Bytes(), c.large) {
			return fmt.Errorf("%d bytes that differ", got.Len())
		}
		return nil
	})
}
