// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
)

var update = flag.Bool("update", false, "write the golden files")

func TestHelp(t *testing.T) {
	var help bytes.Buffer
	_, err := ParseOptions([]string{"--help"}, &help)
	require.ErrorIs(t, err, pflag.ErrHelp)
	golden.Equal(t, *update, "help.txt", help.Bytes())
}

func TestDefaultsAreValid(t *testing.T) {
	o, err := ParseOptions(nil, nil)
	require.NoError(t, err)
	require.Equal(t, ":9090", o.GRPCBindAddress)
	require.Equal(t, "pulsar-autoscaler-adapter", o.Kube.LeaseName, "the adapter's")
	require.Empty(t, o.Poller.PulsarHosts())
}

func TestBadFlagsNameFlagValueAndBound(t *testing.T) {
	tests := map[string]struct{ args, want string }{
		"a key has a certificate": {
			"--tls-private-key-file=/k", `--tls-cert-file is "" and --tls-private-key-file is "/k": both or none must be set`,
		},
		"clients show certificates over TLS": {
			"--client-ca-file=/ca",
			`--client-ca-file is "/ca" and --tls-cert-file is "": clients show certificates over TLS alone`,
		},
		"a certificate has a source": {
			"--serving-certificate=Insecure", `--serving-certificate is "Insecure": it must be one of Files, Self`,
		},
		"a certificate has one source": {
			"--serving-certificate=Self --tls-cert-file=a --tls-private-key-file=b",
			`--serving-certificate is Self, --tls-cert-file is "a" and --client-ca-file is "": leave the files out`,
		},
		"a certificate lasts": {
			"--serving-certificate-lifetime=1s", "--serving-certificate-lifetime is 1s: it must be from 1m0s to 8760h0m0s",
		},
		"a certificate is for a host": {
			"--serving-certificate-host=a:1", `--serving-certificate-host is "a:1": a lowercase RFC 1123 subdomain`,
		},
		"KEDA's certificate has a namespace": {
			"--keda-certificate-secret=a", `--keda-certificate-secret is "a": it must be namespace/name`,
		},
		"KEDA's certificate has a name": {
			"--keda-certificate-secret=a/", `--keda-certificate-secret is "a/": it must be namespace/name`,
		},
		"only Secrets of ours have an owner": {
			"--serving-certificate-owner=a",
			`--serving-certificate-owner is "a" and --serving-certificate is Files: leave the owner out, or set Self`,
		},
		"a namespace has a stream": {
			"--max-streams-per-namespace=0",
			"--max-streams-per-namespace is 0: it must be from 1 to 40000",
		},
		"a sample is held for a minute": {"--hold-for=1s", "--hold-for is 1s: it must be from 1m0s to 24h0m0s"},
		"a sample is not held for days": {"--hold-for=48h", "--hold-for is 48h0m0s: it must be from 1m0s to 24h0m0s"},
		"connections live for a while": {
			"--max-connection-age=1ms",
			"--max-connection-age is 1ms: it must be from 1s to 24h0m0s",
		},
		"an address has a port": {
			"--grpc-bind-address=localhost",
			`--grpc-bind-address is "localhost": it must be host:port or :port`,
		},
		"a port is a number": {
			"--metrics-bind-address=:http",
			`--metrics-bind-address is ":http": it must be host:port or :port`,
		},
		"a shutdown ends": {"--shutdown-delay=2m", "--shutdown-delay is 2m0s: it must be from 0s to 1m0s"},
		"Pulsar's flags are checked": {
			"--pulsar-timeout=1ms",
			"--pulsar-timeout is 1ms: it must be from 10ms to 1m0s",
		},
		"measuring's flags are checked": {
			"--poll-interval=100ms",
			"--poll-interval is 100ms: it must be from 1s to 5m0s",
		},
		"namespaces have names": {
			"--watch-namespaces=media,A_B", `--watch-namespaces is "A_B": a lowercase RFC 1123 label`,
		},
		"a lease has a name": {"--lease-name=", `--lease-name is "": a lowercase RFC 1123 subdomain`},
		"a log level is known": {
			"--log-level=loud",
			`--log-level is "loud": it must be one of debug, info, warn, error`,
		},
		"nothing is written, so no election": {"--lease-duration=15s", "unknown flag: --lease-duration; see --help"},
		"arguments are flags":                {"serve", `argument "serve" is not a flag`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseOptions(strings.Fields(tt.args), nil)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestFlagsOfTheManifestsAreValid(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "deploy", "scaler", "deployment.yaml"))
	require.NoError(t, err)
	var deployment appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(content, &deployment))
	container := deployment.Spec.Template.Spec.Containers[0]
	o, err := ParseOptions(container.Args, nil)
	require.NoError(t, err)
	ports := map[string]string{}
	for _, port := range container.Ports {
		ports[port.Name] = ":" + strconv.Itoa(int(port.ContainerPort))
	}
	require.Equal(t, map[string]string{"grpc": o.GRPCBindAddress, "metrics": o.MetricsBindAddress}, ports)
}
