// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	require.Equal(t, 10250, o.Serving.SecureServing.BindPort)
	require.Equal(t, 5*time.Second, o.ShutdownDelay)
	require.Empty(t, o.Poller.PulsarHosts())
}

func TestBadFlagsNameFlagValueAndBound(t *testing.T) {
	tests := map[string]struct {
		args string
		want string
	}{
		"a reading survives two failed polls": {
			"--poll-interval=30s --stale-after=80s",
			"--stale-after is 1m20s: it must be at least 1m30s, which is 3 times --poll-interval (30s)",
		},
		"a rate window is not longer than readings last": {
			"--rate-window=5m", "--stale-after is 1m0s: it must be at least --rate-window (5m0s)",
		},
		"polls are at least a second apart": {
			"--poll-interval=100ms", "--poll-interval is 100ms: it must be from 1s to 5m0s",
		},
		"polls are at most five minutes apart": {
			"--poll-interval=6m --stale-after=30m", "--poll-interval is 6m0s: it must be from 1s to 5m0s",
		},
		"rates have a window": {
			"--rate-window=0s", "--rate-window is 0s: it must be from 1s to 10m0s",
		},
		"readings do not last for days": {
			"--stale-after=48h", "--stale-after is 48h0m0s: it must be at most 1h",
		},
		"an admin URL has a scheme": {
			"--pulsar-admin-url=broker:8080",
			`--pulsar-admin-url is "broker:8080": it must be http://host:port or https://host:port, one host, with no path and no credentials`,
		},
		"an admin URL has no credentials, and they are not shown": {
			"--pulsar-admin-url=http://a:secret@b:8080",
			`--pulsar-admin-url is "http://a:xxxxx@b:8080": it must be http://host:port or https://host:port, one host, with no path and no credentials`,
		},
		"an admin URL has no path": {
			"--pulsar-admin-url=http://b:8080/admin/v2",
			`--pulsar-admin-url is "http://b:8080/admin/v2": it must be http://host:port or https://host:port, one host, with no path and no credentials`,
		},
		"an authentication plugin is known": {
			"--pulsar-auth-plugin=athenz --pulsar-auth-params-file=/p",
			`--pulsar-auth-plugin is "athenz": it must be one of token, tls, basic, oauth2 or org.apache.pulsar.client.impl.auth.Authentication`,
		},
		"an authentication plugin has parameters": {
			"--pulsar-auth-plugin=tls",
			`--pulsar-auth-plugin is "tls" and --pulsar-auth-params-file is "": both or none must be set`,
		},
		"parameters are some plugin's": {
			"--pulsar-auth-params-file=/p",
			`--pulsar-auth-plugin is "" and --pulsar-auth-params-file is "/p": both or none must be set`,
		},
		"there is one set of credentials": {
			"--pulsar-token-file=/t --pulsar-auth-plugin=basic --pulsar-auth-params-file=/p",
			`--pulsar-auth-plugin is "basic" and --pulsar-token-file is "/t": only one of them may be set`,
		},
		"an issuer is a URL, and its password is not shown": {
			"--allowed-oauth2-issuers=https://good/path,https://me:secret@b",
			`--allowed-oauth2-issuers has "https://me:xxxxx@b": it must be a URL such as https://issuer/path, with no credentials and no query`,
		},
		"instances are scraped or not": {
			"--instance-metrics=Service",
			`--instance-metrics is "Service": it must be one of Pods, Off`,
		},
		"workers are shown one of two": {
			"--worker-credentials=None",
			`--worker-credentials is "None": it must be one of Policy, Own`,
		},
		"credentials are used or not": {
			"--function-credentials=Ask",
			`--function-credentials is "Ask": it must be one of Use, Ignore`,
		},
		"Pulsar gets time to respond": {
			"--pulsar-timeout=1ms",
			"--pulsar-timeout is 1ms: it must be from 10ms to 1m0s",
		},
		"a host gets at least a request a second": {
			"--max-requests-per-second=0",
			"--max-requests-per-second is 0: it must be from 1 to 100000",
		},
		"a subscription has a topic": {
			"--max-topics-per-subscription=0",
			"--max-topics-per-subscription is 0: it must be from 1 to 100000",
		},
		"the topics of a namespace are bounded": {
			"--max-topics-per-namespace=1000001",
			"--max-topics-per-namespace is 1000001: it must be from 1 to 1000000",
		},
		"a cluster gets at least a request": {
			"--max-requests-per-cluster=0",
			"--max-requests-per-cluster is 0: it must be from 1 to 1000",
		},
		"namespaces have names": {
			"--watch-namespaces=media,A_B", `--watch-namespaces is "A_B": a lowercase RFC 1123 label`,
		},
		"a lease has a name": {"--lease-name=", `--lease-name is "": a lowercase RFC 1123 subdomain`},
		"a namespace is a label": {
			"--lease-namespace=A_B",
			`--lease-namespace is "A_B": a lowercase RFC 1123 label`,
		},
		"a service has a name": {"--service-name=", `--service-name is "": a DNS-1035 label`},
		"its namespace is a label": {
			"--service-namespace=A_B",
			`--service-namespace is "A_B": a lowercase RFC 1123 label`,
		},
		"a lease lasts whole seconds": {
			"--lease-duration=15500ms", "--lease-duration is 15.5s: it must be whole seconds, as a Lease has no smaller",
		},
		"a holder gives up before others take over": {
			"--lease-renew-deadline=15s",
			"--lease-renew-deadline is 15s: it must be below --lease-duration (15s), else two replicas decide at once",
		},
		"a holder tries more than once": {
			"--lease-retry-period=6s",
			"--lease-retry-period is 6s: it must be at most half of --lease-renew-deadline (10s)",
		},
		"a holder is heard of in time": {
			"--lease-duration=5m --lease-renew-deadline=4m --lease-retry-period=1m",
			"--lease-retry-period is 1m0s: it must be from 100ms to 20s",
		},
		"KEDA finds the scaler by host and port": {
			"--keda-scaler-address=scaler",
			`--keda-scaler-address is "scaler": it must be host:port with a port from 1 to 65535, such as scaler.pulsar-autoscaler.svc:9090`,
		},
		"a port is not 0": {
			"--keda-scaler-address=scaler:0",
			`--keda-scaler-address is "scaler:0": it must be host:port`,
		},
		"a host is named": {"--keda-scaler-address=:9090", `--keda-scaler-address is ":9090": it must be host:port`},
		"KEDA's CA has a name": {
			"--keda-scaler-address=a:1 --keda-scaler-authentication=A_B",
			`--keda-scaler-authentication is "A_B": a lowercase RFC 1123 subdomain`,
		},
		"a certificate has a source": {
			"--serving-certificate=Magic", `--serving-certificate is "Magic": it must be one of Files, Self, Insecure`,
		},
		"a certificate has one source": {
			"--serving-certificate=Self --tls-cert-file=a --tls-private-key-file=b",
			`--serving-certificate is Self and --tls-cert-file is "a": leave one of them out`,
		},
		"a certificate lasts": {
			"--serving-certificate-lifetime=1s", "--serving-certificate-lifetime is 1s: it must be from 1m0s to 8760h0m0s",
		},
		"an owner is for APIServices of ours": {
			"--apiservice-owner=a",
			`--apiservice-owner is "a": the adapter writes the APIServices with --tls-ca-file, or with --serving-certificate=Self`,
		},
		"authorities are of a certificate": {
			"--tls-ca-file=a",
			`--tls-ca-file is "a", --serving-certificate is Files and --tls-cert-file is "": it is for Files`,
		},
		"authorities are of a certificate in files": {
			"--tls-ca-file=a --serving-certificate=Insecure",
			`--tls-ca-file is "a", --serving-certificate is Insecure and --tls-cert-file is "": it is for Files`,
		},
		"a Service has a port":  {"--service-port=0", "--service-port is 0: it must be from 1 to 65535"},
		"TLS is for the scaler": {"--keda-scaler-tls", "they are for --keda-scaler-address, which must be set then"},
		"a shutdown ends":       {"--shutdown-delay=2m", "--shutdown-delay is 2m0s: it must be from 0s to 1m0s"},
		"a log level is known":  {"--log-level=loud", `--log-level is "loud": it must be one of debug, info, warn, error`},
		"a level of metrics is known": {
			"--policy-metrics=All", `--policy-metrics is "All": it must be one of Essential, Full, Off`,
		},
		"a log format is known": {"--log-format=xml", `--log-format is "xml": it must be one of json, text`},
		"metrics are served":    {"--secure-port=0", "--secure-port is 0: it must be from 1 to 65535"},
		"ports have a bound":    {"--secure-port=70000", "--secure-port 70000 must be between 1 and 65535"},
		"flags are known":       {"--poll=1s", "unknown flag: --poll; see --help"},
		"arguments are flags":   {"poll", `argument "poll" is not a flag: flags look like --poll-interval=10s; see --help`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseOptions(strings.Fields(tt.args), nil)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestEveryProblemIsNamedAtOnce(t *testing.T) {
	_, err := ParseOptions([]string{"--poll-interval=0s", "--log-level=loud", "--pulsar-timeout=0s"}, nil)
	for _, name := range []string{"--poll-interval", "--log-level", "--pulsar-timeout"} {
		require.ErrorContains(t, err, name)
	}
}

func TestTheHostOfTheAdminURLIsAllowed(t *testing.T) {
	o, err := ParseOptions([]string{
		"--pulsar-admin-url=http://broker.pulsar:8080/",
		"--allowed-pulsar-hosts=*.pulsar.svc,other:80",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"*.pulsar.svc", "other:80", "http://broker.pulsar:8080"}, o.Poller.PulsarHosts())
}

func TestFlagsOfTheManifestsAreValid(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "deploy", "adapter", "deployment.yaml"))
	require.NoError(t, err)
	var deployment appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(content, &deployment))
	container := deployment.Spec.Template.Spec.Containers[0]
	o, err := ParseOptions(container.Args, nil)
	require.NoError(t, err)
	require.EqualValues(t, container.Ports[0].ContainerPort, o.Serving.SecureServing.BindPort)
}

func TestTheServiceMatchesTheManifests(t *testing.T) {
	content, err := os.ReadFile("../../deploy/adapter/service.yaml")
	require.NoError(t, err)
	var service corev1.Service
	require.NoError(t, yaml.UnmarshalStrict(content, &service))
	o := NewOptions()
	require.Equal(t, types.NamespacedName{Namespace: service.Namespace, Name: service.Name},
		o.ServiceKey(service.Namespace))
	o.ServiceNamespace = "elsewhere"
	require.Equal(t, "elsewhere", o.ServiceKey(service.Namespace).Namespace)
}
