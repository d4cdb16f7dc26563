package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// raw is a codec of plain bytes, so that no generated code is needed.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)   { return *(v.(*[]byte)), nil }
func (raw) Unmarshal(d []byte, v any) error { *(v.(*[]byte)) = bytes.Clone(d); return nil }
func (raw) Name() string                    { return "proto" }

// The service weir.Interop. Every method is declared as a bidirectional stream: on the wire, the
// four kinds differ only in how many messages each side sends.
func stream(name string, handle func(grpc.ServerStream) error) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, s grpc.ServerStream) error { return handle(s) }}
}

func echoAll(s grpc.ServerStream) error {
	for {
		var message []byte
		if err := s.RecvMsg(&message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.SendMsg(&message); err != nil {
			return err
		}
	}
}

func serveGrpc(o options) {
	service := grpc.ServiceDesc{ServiceName: "weir.Interop", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{
		stream("Echo", echoAll),
		stream("Bidi", echoAll),
		// The first message says how many messages of 1,000 bytes to send.
		stream("Down", func(s grpc.ServerStream) error {
			var message []byte
			if err := s.RecvMsg(&message); err != nil {
				return err
			}
			var count int
			fmt.Sscan(string(message), &count)
			piece := bytes.Repeat([]byte("d"), 1000)
			for range count {
				if err := s.SendMsg(&piece); err != nil {
					return err
				}
			}
			return nil
		}),
		stream("Up", func(s grpc.ServerStream) error {
			count := 0
			for {
				var message []byte
				if err := s.RecvMsg(&message); err == io.EOF {
					break
				} else if err != nil {
					return err
				}
				count += len(message)
			}
			total := fmt.Appendf(nil, "%d", count)
			return s.SendMsg(&total)
		}),
		stream("Sleep", func(s grpc.ServerStream) error {
			var message []byte
			if err := s.RecvMsg(&message); err != nil {
				return err
			}
			var ms int
			fmt.Sscan(string(message), &ms)
			select {
			case <-time.After(time.Duration(ms) * time.Millisecond):
			case <-s.Context().Done():
				return s.Context().Err()
			}
			return s.SendMsg(&message)
		}),
		stream("Fail", func(grpc.ServerStream) error {
			failed, err := status.New(codes.FailedPrecondition, "100% nö").
				WithDetails(&errdetails.ErrorInfo{Reason: "INTEROP", Domain: "weir"})
			if err != nil {
				return err
			}
			return failed.Err()
		}),
	}}
	var servers []*grpc.Server
	start := func(address string, more ...grpc.ServerOption) {
		server := grpc.NewServer(append(more, grpc.ForceServerCodec(raw{}))...)
		server.RegisterService(&service, nil)
		listener, err := net.Listen("tcp", address)
		must(err)
		servers = append(servers, server)
		go server.Serve(listener)
	}
	start(o.clear)
	certificate, err := credentials.NewServerTLSFromFile(o.chain, o.key)
	must(err)
	start(o.tls, grpc.Creds(certificate))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	for _, server := range servers {
		server.GracefulStop()
	}
}

type grpcClient struct{ *grpc.ClientConn }

func askGrpc(o options) {
	secure := insecure.NewCredentials()
	target := o.base[len("http://"):]
	if o.base[:6] == "https:" {
		var err error
		secure, err = credentials.NewClientTLSFromFile(o.ca, "")
		must(err)
		target = o.base[len("https://"):]
	}
	connection, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(8_000_000)))
	must(err)
	c := grpcClient{connection}
	runCases(o.cases, map[string]func() error{
		"grpc-unary":         func() error { return c.same("Echo", []byte("hello")) },
		"grpc-4mb":           func() error { return c.same("Echo", bytes.Repeat([]byte("m"), 4_000_000)) },
		"grpc-server-stream": c.down,
		"grpc-client-stream": c.up,
		"grpc-bidi":          c.bidi,
		"grpc-deadline":      c.deadline,
		"grpc-cancel":        c.cancel,
		"grpc-error":         c.failing,
		"grpc-parallel-100":  func() error { return c.many(100, 100) },
		"grpc-goaway":        func() error { report("grpc-goaway", "started", ""); return c.many(200, 10) },
	})
}

func (c grpcClient) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	var reply []byte
	err := c.Invoke(ctx, "/weir.Interop/"+method, &message, &reply)
	return reply, err
}

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 20*time.Second)
}

func (c grpcClient) same(method string, message []byte) error {
	ctx, cancel := soon()
	defer cancel()
	reply, err := c.call(ctx, method, message)
	if err == nil && !bytes.Equal(reply, message) {
		err = fmt.Errorf("%d bytes that differ", len(reply))
	}
	return err
}

func (c grpcClient) open(ctx context.Context, method string) (grpc.ClientStream, error) {
	return c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/weir.Interop/"+method)
}

func (c grpcClient) down() error {
	ctx, cancel := soon()
	defer cancel()
	s, err := c.open(ctx, "Down")
	if err != nil {
		return err
	}
	count := []byte("2000")
	if err := errors.Join(s.SendMsg(&count), s.CloseSend()); err != nil {
		return err
	}
	got := 0
	for {
		var message []byte
		if err := s.RecvMsg(&message); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("after %d messages: %w", got, err)
		}
		got++
	}
	if got != 2000 {
		return fmt.Errorf("%d messages of 2000", got)
	}
	return nil
}

func (c grpcClient) up() error {
	ctx, cancel := soon()
	defer cancel()
	s, err := c.open(ctx, "Up")
	if err != nil {
		return err
	}
	piece := bytes.Repeat([]byte("u"), 1000)
	for range 2000 {
		if err := s.SendMsg(&piece); err != nil {
			return err
		}
	}
	var total []byte
	if err := errors.Join(s.CloseSend(), s.RecvMsg(&total)); err != nil {
		return err
	}
	if string(total) != "2000000" {
		return fmt.Errorf("the server counted %q bytes", total)
	}
	if err := s.RecvMsg(&total); err != io.EOF {
		return fmt.Errorf("instead of the end: %v", err)
	}
	return nil
}

func (c grpcClient) bidi() error {
	ctx, cancel := soon()
	defer cancel()
	s, err := c.open(ctx, "Bidi")
	if err != nil {
		return err
	}
	for n := range 200 {
		sent, got := fmt.Appendf(nil, "%d", n), []byte(nil)
		if err := errors.Join(s.SendMsg(&sent), s.RecvMsg(&got)); err != nil {
			return fmt.Errorf("message %d: %w", n, err)
		}
		if !bytes.Equal(sent, got) {
			return fmt.Errorf("message %d came back as %q", n, got)
		}
	}
	_ = s.CloseSend()
	var got []byte
	if err := s.RecvMsg(&got); err != io.EOF {
		return fmt.Errorf("instead of the end: %v", err)
	}
	return nil
}

func (c grpcClient) deadline() error {
	// The clocks of client, balancer and server race, so once is not enough.
	for range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		_, err := c.call(ctx, "Sleep", []byte("5000"))
		cancel()
		if status.Code(err) != codes.DeadlineExceeded {
			return fmt.Errorf("instead of DEADLINE_EXCEEDED: %v", err)
		}
	}
	return c.same("Echo", []byte("after"))
}

func (c grpcClient) cancel() error {
	ctx, cancel := soon()
	defer cancel()
	s, err := c.open(ctx, "Down")
	if err != nil {
		return err
	}
	count, message := []byte("1000000"), []byte(nil)
	if err := errors.Join(s.SendMsg(&count), s.RecvMsg(&message)); err != nil {
		return err
	}
	cancel()
	for err == nil {
		err = s.RecvMsg(&message)
	}
	if status.Code(err) != codes.Canceled {
		return fmt.Errorf("instead of CANCELLED: %v", err)
	}
	return c.same("Echo", []byte("after"))
}

func (c grpcClient) failing() error {
	ctx, cancel := soon()
	defer cancel()
	_, err := c.call(ctx, "Fail", []byte("x"))
	got := status.Convert(err)
	if got.Code() != codes.FailedPrecondition || got.Message() != "100% nö" || len(got.Details()) != 1 {
		return fmt.Errorf("got %v with %d details", err, len(got.Details()))
	}
	if info, _ := got.Details()[0].(*errdetails.ErrorInfo); info.GetReason() != "INTEROP" {
		return fmt.Errorf("details %v", got.Details())
	}
	return nil
}

func (c grpcClient) many(count, at int) error {
	slots := make(chan struct{}, at)
	var all sync.WaitGroup
	var failed atomic.Int32
	var first atomic.Value
	for range count {
		slots <- struct{}{}
		all.Go(func() {
			if err := c.same("Sleep", []byte("50")); err != nil {
				failed.Add(1)
				first.CompareAndSwap(nil, err.Error())
			}
			<-slots
		})
	}
	all.Wait()
	if failed.Load() > 0 {
		return fmt.Errorf("%d of %d failed: %v", failed.Load(), count, first.Load())
	}
	return nil
}
