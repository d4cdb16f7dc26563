// A DNS server in place of CoreDNS with the suite's Corefile: it answers foo.bar.com as the plugin `whoami` does, and
// refuses every other name, because the cluster has no upstream server.

package main

import (
	"fmt"
	"net"
	"strconv"

	"github.com/miekg/dns"
)

const zone = "foo.bar.com."

func serveDNS() error {
	dns.HandleFunc(".", answer)
	failed := make(chan error, 2)
	for _, transport := range []string{"udp", "tcp"} {
		server := &dns.Server{Addr: ":53", Net: transport}
		go func() { failed <- fmt.Errorf("DNS over %s: %w", transport, server.ListenAndServe()) }()
	}
	return <-failed
}

func answer(writer dns.ResponseWriter, question *dns.Msg) {
	reply := new(dns.Msg)
	if len(question.Question) == 1 && dns.IsSubDomain(zone, question.Question[0].Name) {
		reply.SetReply(question)
		reply.Authoritative = true
		reply.Extra = whoami(question.Question[0].Name, writer.RemoteAddr())
	} else {
		reply.SetRcode(question, dns.RcodeRefused)
	}
	if err := writer.WriteMsg(reply); err != nil {
		fmt.Printf("a reply to %s could not be sent: %v\n", writer.RemoteAddr(), err)
	}
}

// whoami returns the client's address and port as records.
func whoami(name string, client net.Addr) []dns.RR {
	host, service, err := net.SplitHostPort(client.String())
	if err != nil {
		return nil
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil
	}
	srv := &dns.SRV{
		Hdr:  dns.RR_Header{Name: "_" + client.Network() + "." + name, Rrtype: dns.TypeSRV, Class: dns.ClassINET},
		Port: uint16(port), Target: ".",
	}
	address := net.ParseIP(host)
	if v4 := address.To4(); v4 != nil {
		return []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: v4}, srv}
	}
	return []dns.RR{&dns.AAAA{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeAAAA, Class: dns.ClassINET}, AAAA: address}, srv}
}
