// Calls the external scaler of Weir with KEDA's own generated client, and prints one line for each result.
//
//	keda-client ADDRESS CALL METADATA...
//
// CALL is IsActive, GetMetricSpec, GetMetrics, StreamIsActive or StreamMetricSpec. METADATA are KEY=VALUE, as a trigger of a
// ScaledObject has them. The namespace of the ScaledObject is `shop`. With CA=FILE in the environment, the connection has
// TLS, and with CERTIFICATE=FILE and KEY=FILE the client presents a certificate.
//
// A stream prints its messages until it ends. The last line is `status CODE MESSAGE`.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const callMax = 2 * time.Minute

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: keda-client ADDRESS CALL KEY=VALUE...")
		os.Exit(2)
	}
	transport, err := transport()
	if err != nil {
		fmt.Fprintln(os.Stderr, "keda-client:", err)
		os.Exit(2)
	}
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(transport))
	if err != nil {
		fmt.Fprintln(os.Stderr, "keda-client:", err)
		os.Exit(2)
	}
	defer connection.Close()
	object := &pb.ScaledObjectRef{Name: "web", Namespace: "shop", ScalerMetadata: map[string]string{}}
	for _, pair := range os.Args[3:] {
		key, value, _ := strings.Cut(pair, "=")
		object.ScalerMetadata[key] = value
	}
	ctx, cancel := context.WithTimeout(context.Background(), callMax)
	defer cancel()
	err = call(ctx, pb.NewExternalScalerClient(connection), os.Args[2], object)
	result := status.Convert(err)
	fmt.Printf("status %s %s\n", result.Code(), result.Message())
}

func call(ctx context.Context, client pb.ExternalScalerClient, name string, object *pb.ScaledObjectRef) error {
	switch name {
	case "IsActive":
		answer, err := client.IsActive(ctx, object)
		if err == nil {
			fmt.Println("active", answer.Result)
		}
		return err
	case "GetMetricSpec":
		answer, err := client.GetMetricSpec(ctx, object)
		for _, spec := range answer.GetMetricSpecs() {
			fmt.Println("target", spec.MetricName, spec.TargetSize, spec.TargetSizeFloat)
		}
		return err
	case "GetMetrics":
		request := &pb.GetMetricsRequest{ScaledObjectRef: object, MetricName: "weir_service_wanted_servers"}
		answer, err := client.GetMetrics(ctx, request)
		for _, value := range answer.GetMetricValues() {
			fmt.Println("value", value.MetricName, value.MetricValue, value.MetricValueFloat)
		}
		return err
	case "StreamIsActive":
		stream, err := client.StreamIsActive(ctx, object)
		for err == nil {
			var answer *pb.IsActiveResponse
			if answer, err = stream.Recv(); err == nil {
				fmt.Println("active", answer.Result)
			}
		}
		return ended(err)
	case "StreamMetricSpec":
		stream, err := client.StreamMetricSpec(ctx, object)
		if err == nil {
			_, err = stream.Recv()
		}
		return ended(err)
	}
	return fmt.Errorf("unknown call %s", name)
}

// ended returns nil for a stream that ended well.
func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func transport() (credentials.TransportCredentials, error) {
	file := os.Getenv("CA")
	if file == "" {
		return insecure.NewCredentials(), nil
	}
	authorities, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: os.Getenv("NAME")}
	config.RootCAs.AppendCertsFromPEM(authorities)
	if file := os.Getenv("CERTIFICATE"); file != "" {
		own, err := tls.LoadX509KeyPair(file, os.Getenv("KEY"))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return credentials.NewTLS(config), nil
}
