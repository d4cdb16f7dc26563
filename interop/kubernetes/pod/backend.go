// A small HTTP server that tells which backend it is: every response has the header `Backend` with the value of the
// environment variable NAME. It is cheaper than echo-basic, so that it takes little from what is measured.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	backendAddress = ":8080"
	// drainMax is how long requests may take after SIGTERM.
	drainMax = 10 * time.Second
)

func serveBackend() error {
	name := os.Getenv("NAME")
	if name == "" {
		return fmt.Errorf("the environment variable NAME is missing; set it to the backend's name")
	}
	body := []byte(name + "\n")
	server := &http.Server{
		Addr: backendAddress, ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
			writer.Header().Set("Backend", name)
			// An error means that the client is gone.
			_, _ = writer.Write(body)
		}),
	}
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	drained := make(chan error, 1)
	go func() {
		<-terminated.Done()
		limited, cancel := context.WithTimeout(context.Background(), drainMax)
		defer cancel()
		drained <- server.Shutdown(limited)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-drained
}
