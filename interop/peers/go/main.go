// Command go-peer is every peer in Go: net/http as a server and as a client, grpc-go as both.
// interop/README.md describes what a peer's paths and cases are.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
)

// errNotApplicable marks a case that the API cannot express.
var errNotApplicable = errors.New("not applicable")

type options struct {
	base, body, ca, cases      string
	clear, tls, h1, chain, key string
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: go-peer server|client|grpc-server|grpc-client ...")
	}
	var o options
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.base, "base", "", "where the paths are")
	flags.StringVar(&o.body, "body", "", "file of 5 MB")
	flags.StringVar(&o.ca, "ca", "", "authority that signed the certificates")
	flags.StringVar(&o.cases, "cases", "", "cases to run, with commas between them")
	flags.StringVar(&o.clear, "clear", "", "address for HTTP/2 in clear text")
	flags.StringVar(&o.tls, "tls", "", "address for HTTP/2 over TLS")
	flags.StringVar(&o.h1, "h1", "", "address for HTTP/1.1")
	flags.StringVar(&o.chain, "chain", "", "certificate chain")
	flags.StringVar(&o.key, "key", "", "private key")
	_ = flags.Parse(os.Args[2:])
	switch os.Args[1] {
	case "server":
		serve(o)
	case "client":
		ask(o)
	case "grpc-server":
		serveGrpc(o)
	case "grpc-client":
		askGrpc(o)
	default:
		log.Fatalf("unknown peer %q", os.Args[1])
	}
}

// runCases runs the named cases and prints one line of JSON for each.
func runCases(names string, cases map[string]func() error) {
	for _, name := range strings.Split(names, ",") {
		result, why := "pass", ""
		one, known := cases[name]
		err := errNotApplicable
		if known {
			err = one()
		}
		if errors.Is(err, errNotApplicable) {
			result = "n/a"
		} else if err != nil {
			result, why = "fail", err.Error()
		}
		report(name, result, why)
	}
}

func report(name, result, why string) {
	line, _ := json.Marshal(map[string]string{"case": name, "result": result, "why": why})
	fmt.Println(string(line))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
