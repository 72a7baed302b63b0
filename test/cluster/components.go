// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	controllerManager = "kube-controller-manager"
	// frontProxyUser is the only user name that extension API servers accept from the aggregator.
	frontProxyUser = "front-proxy-client"
)

// controllers are those of a real cluster that work without nodes and that tests need: deployment and replicaset for
// targets of KEDA and of users, but not ephemeral-volume and the like.
func controllers() []string {
	return []string{
		"horizontal-pod-autoscaler-controller", "statefulset-controller", "deployment-controller", "replicaset-controller",
		"garbage-collector-controller", "namespace-controller", "serviceaccount-controller",
		"serviceaccount-token-controller",
	}
}

// gates turn off what clusters do by default from 1.37 on only, so that tests show the product where most clusters are:
// there the controller scales to zero. Later flags override them.
const gates = "--feature-gates=HPAScaleToZero=false"

// ports are those of one cluster on 127.0.0.1.
type ports struct {
	etcdClient, etcdPeer, apiServer, controllerManager int
}

func local(scheme string, port int) string {
	return scheme + "://127.0.0.1:" + strconv.Itoa(port)
}

// program is a server that works once a URL responds with 200.
func (c *Cluster) program(alive context.Context, name, path, ready string, args []string) Program {
	return Program{
		Program: proc.NewProgram(alive, proc.Config{
			Name: name, Path: path, Args: args, Dir: c.dir, LogPath: filepath.Join(c.dir, "logs", name+".log"),
		}),
		Ready: func(ctx context.Context) (bool, string, error) { return Answers(ctx, c.check, ready) },
	}
}

func (c *Cluster) etcd(alive context.Context) Program {
	client, peer := local("http", c.ports.etcdClient), local("http", c.ports.etcdPeer)
	return c.program(alive, "etcd", c.config.Binaries.Etcd, client+"/readyz", flags(
		"name", "default",
		"data-dir", filepath.Join(c.dir, "etcd"),
		"listen-client-urls", client, "advertise-client-urls", client,
		"listen-peer-urls", peer, "initial-advertise-peer-urls", peer, "initial-cluster", "default="+peer,
		"unsafe-no-fsync", "true", // the data need not survive a power failure
		"log-level", "warn",
	))
}

func (c *Cluster) apiServer(alive context.Context) Program {
	pki := func(name string) string { return filepath.Join(c.dir, "pki", name) }
	return c.program(alive, "kube-apiserver", c.config.Binaries.APIServer, local("https", c.ports.apiServer)+"/readyz",
		append(flags(
			"etcd-servers", local("http", c.ports.etcdClient),
			"bind-address", "127.0.0.1", "advertise-address", "127.0.0.1", "secure-port", strconv.Itoa(c.ports.apiServer),
			"endpoint-reconciler-type", "none", // it rejects a loopback address, and no client reads the endpoints
			"service-cluster-ip-range", "10.0.0.0/24",
			"authorization-mode", "RBAC",
			"client-ca-file", pki("ca.crt"),
			"tls-cert-file", pki("apiserver.crt"), "tls-private-key-file", pki("apiserver.key"),
			"service-account-issuer", "https://kubernetes.default.svc",
			"service-account-key-file", pki(
				"service-account.key"), "service-account-signing-key-file", pki("service-account.key"),
			// The aggregator calls extension API servers with this client certificate and the user in headers; the servers
			// learn CA, name and headers from the ConfigMap kube-system/extension-apiserver-authentication.
			"requestheader-client-ca-file", pki("front-proxy-ca.crt"),
			"requestheader-allowed-names", frontProxyUser,
			"requestheader-username-headers", "X-Remote-User",
			"requestheader-group-headers", "X-Remote-Group",
			"requestheader-extra-headers-prefix", "X-Remote-Extra-",
			"proxy-client-cert-file", pki("front-proxy-client.crt"), "proxy-client-key-file", pki("front-proxy-client.key"),
		), append([]string{gates}, c.config.APIServerArgs...)...))
}

func (c *Cluster) controllerManager(alive context.Context) Program {
	pki := func(name string) string { return filepath.Join(c.dir, "pki", name) }
	kubeconfig := c.kubeconfigPath(controllerManager)
	return c.program(alive, controllerManager, c.config.Binaries.ControllerManager,
		local("https", c.ports.controllerManager)+"/healthz", append(flags(
			"kubeconfig", kubeconfig, "authentication-kubeconfig", kubeconfig, "authorization-kubeconfig", kubeconfig,
			"bind-address", "127.0.0.1", "secure-port", strconv.Itoa(c.ports.controllerManager),
			"tls-cert-file", pki("controller-manager.crt"), "tls-private-key-file", pki("controller-manager.key"),
			"controllers", strings.Join(slices.Concat(c.config.Controllers, controllers()), ","), // the first of a name counts
			"leader-elect", "false",
			// As in real clusters, each controller has its own user and bootstrap role, so that missing permissions show.
			"use-service-account-credentials", "true",
			"service-account-private-key-file", pki("service-account.key"), "root-ca-file", pki("ca.crt"),
			"horizontal-pod-autoscaler-sync-period", c.config.HPASyncPeriod.String(),
		), append([]string{gates}, c.config.ControllerManagerArgs...)...))
}

// flags turns pairs of name and value into --name=value.
func flags(pairs ...string) []string {
	args := make([]string, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		args = append(args, fmt.Sprintf("--%s=%s", pairs[i], pairs[i+1]))
	}
	return args
}
