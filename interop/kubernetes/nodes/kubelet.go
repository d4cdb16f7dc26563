// The part of a kubelet's API that the API server uses for `kubectl logs`.

package nodes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	// Knows how the options are written in a query.
	_ "k8s.io/kubernetes/pkg/apis/core/install"

	"weir.test/interop/kubernetes/cluster"
)

// kubeletPort is the port of a kubelet's API.
const kubeletPort = 10250

// logsPath is the path of a container's log.
const logsPath = "GET /containerLogs/{namespace}/{pod}/{container}"

// headerWait bounds how long a client may take to send its request.
const headerWait = 10 * time.Second

// serveLogs serves the API at the Node's address until the context ends. The API server does not verify the
// certificate: it knows no authority for kubelets.
func (a *agent) serveLogs(ctx context.Context) error {
	node := net.IP(cluster.Node.AsSlice())
	certificate, key, err := cert.GenerateSelfSignedCertKey(cluster.NodeName, []net.IP{node}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	// Before the Node names the port.
	listener, err := net.Listen("tcp", net.JoinHostPort(cluster.Node.String(), strconv.Itoa(kubeletPort)))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(logsPath, a.containerLogs)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerWait, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		// Requests that follow a log end with the cluster.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			log.Printf("logs of containers are no longer served: %v", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// containerLogs answers with what a container has written.
func (a *agent) containerLogs(response http.ResponseWriter, request *http.Request) {
	options := &corev1.PodLogOptions{}
	err := legacyscheme.ParameterCodec.DecodeParameters(request.URL.Query(), corev1.SchemeGroupVersion, options)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	namespace, pod, name := request.PathValue("namespace"), request.PathValue("pod"), request.PathValue("container")
	found := a.outputs(namespace, pod, name)
	if found == nil {
		http.Error(response, fmt.Sprintf("no container %q of Pod %s/%s is on this Node", name, namespace, pod),
			http.StatusNotFound)
		return
	}
	output := found.of(options.Previous)
	if output == nil {
		message := fmt.Sprintf("container %q in pod %q is waiting to start", name, pod)
		if options.Previous {
			message = fmt.Sprintf("previous terminated container %q in pod %q not found", name, pod)
		}
		http.Error(response, message, http.StatusBadRequest)
		return
	}
	response.Header().Set("Content-Type", "text/plain")
	to := io.Writer(response)
	if options.Follow {
		controller := http.NewResponseController(response)
		_ = controller.Flush()
		to = flushed{response, controller}
	}
	// Also the end of the client's connection, and the limit of the answer's size.
	_ = output.copy(request.Context(), to, options)
}

// flushed sends each part at once.
type flushed struct {
	to         io.Writer
	controller *http.ResponseController
}

func (f flushed) Write(text []byte) (int, error) {
	written, err := f.to.Write(text)
	if err == nil {
		err = f.controller.Flush()
	}
	return written, err
}

// outputs returns those of a container; nil if no Pod of this Node has it. Of several Pods with the name, the newest
// one counts: the others are being stopped.
func (a *agent) outputs(namespace, name, container string) *outputs {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var newest *pod
	for _, candidate := range a.pods {
		object := candidate.object
		if object.Namespace != namespace || object.Name != name {
			continue
		}
		if newest == nil || newest.started.Before(&candidate.started) {
			newest = candidate
		}
	}
	if newest == nil {
		return nil
	}
	return newest.outputs[container]
}
