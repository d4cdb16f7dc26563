package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func paths(large []byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/small", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "6")
		io.WriteString(w, "hello\n")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) { w.Write(large) })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		io.Copy(w, r.Body)
	})
	mux.HandleFunc("/trailers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "hello\n")
		w.Header().Set("X-Sum", "6")
	})
	mux.HandleFunc("/fields", func(w http.ResponseWriter, r *http.Request) {
		var lines []string
		for name, values := range r.Header {
			if name = strings.ToLower(name); strings.HasPrefix(name, "x-f-") {
				lines = append(lines, name+": "+strings.Join(values, ", ")+"\n")
			}
		}
		sort.Strings(lines)
		fmt.Fprintf(w, "%scookie: %s\n", strings.Join(lines, ""), strings.Join(r.Header["Cookie"], "; "))
	})
	mux.HandleFunc("/early", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "early\n") })
	mux.HandleFunc("/204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })
	mux.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(304)
	})
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
		ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
		time.Sleep(time.Duration(ms) * time.Millisecond)
		io.WriteString(w, "hello\n")
	})
	return mux
}

func serve(o options) {
	large, err := os.ReadFile(o.body)
	must(err)
	handler := paths(large)
	var servers []*http.Server
	start := func(address string, set func(*http.Protocols), listen func(*http.Server) error) {
		if address == "" {
			return
		}
		protocols := new(http.Protocols)
		set(protocols)
		server := &http.Server{Addr: address, Handler: handler, Protocols: protocols}
		servers = append(servers, server)
		go func() {
			if err := listen(server); err != http.ErrServerClosed {
				must(err)
			}
		}()
	}
	clear := func(s *http.Server) error { return s.ListenAndServe() }
	start(o.h1, func(p *http.Protocols) { p.SetHTTP1(true) }, clear)
	start(o.clear, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, clear)
	start(o.tls, func(p *http.Protocols) { p.SetHTTP2(true) },
		func(s *http.Server) error { return s.ListenAndServeTLS(o.chain, o.key) })
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	// Shutdown sends GOAWAY and waits for the requests that run.
	within, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, server := range servers {
		_ = server.Shutdown(within)
	}
}
