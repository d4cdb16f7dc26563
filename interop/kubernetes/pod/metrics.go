// A server of the API external.metrics.k8s.io, for HorizontalPodAutoscalers. Tests set its values:
//
//	curl --insecure --request PUT --data 250m https://ADDRESS:6443/values/NAME
//
// A value is a quantity of Kubernetes (250m is a quarter), and is the same in every namespace and for every selector.

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"sync"
	"time"
)

const (
	metricsAddress = ":6443"
	metricsGroup   = "external.metrics.k8s.io/v1beta1"
	// quantityBytesMax is more than any quantity needs.
	quantityBytesMax = 64
)

type metrics struct {
	mutex  sync.Mutex
	values map[string]string
}

func serveMetrics() error {
	certificate, err := selfSigned()
	if err != nil {
		return fmt.Errorf("the certificate could not be made: %w", err)
	}
	m := &metrics{values: map[string]string{}}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /apis/"+metricsGroup, m.resources)
	routes.HandleFunc("GET /apis/"+metricsGroup+"/namespaces/{namespace}/{name}", m.get)
	routes.HandleFunc("PUT /values/{name}", m.put)
	server := &http.Server{
		Addr: metricsAddress, Handler: routes, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	return server.ListenAndServeTLS("", "")
}

// resources tells the API server which metrics exist.
func (m *metrics) resources(writer http.ResponseWriter, _ *http.Request) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	resources := []map[string]any{}
	for name := range m.values {
		resources = append(resources, map[string]any{
			"name": name, "singularName": "", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": []string{"get"},
		})
	}
	reply(writer, map[string]any{
		"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": metricsGroup, "resources": resources,
	})
}

func (m *metrics) get(writer http.ResponseWriter, request *http.Request) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	name := request.PathValue("name")
	value, found := m.values[name]
	if !found {
		http.Error(writer, "no value was set for "+name, http.StatusNotFound)
		return
	}
	reply(writer, map[string]any{
		"kind": "ExternalMetricValueList", "apiVersion": metricsGroup, "metadata": map[string]any{},
		"items": []map[string]any{{
			"metricName": name, "metricLabels": map[string]string{}, "value": value,
			"timestamp": time.Now().UTC().Format(time.RFC3339),
		}},
	})
}

func (m *metrics) put(_ http.ResponseWriter, request *http.Request) {
	value, err := io.ReadAll(io.LimitReader(request.Body, quantityBytesMax))
	if err != nil {
		// The client is gone.
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.values[request.PathValue("name")] = string(value)
}

func reply(writer http.ResponseWriter, body any) {
	writer.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(writer).Encode(body); err != nil {
		fmt.Printf("a reply could not be sent: %v\n", err)
	}
}

// selfSigned returns a certificate that only a client without verification accepts.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0)}
	content, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key}, nil
}
