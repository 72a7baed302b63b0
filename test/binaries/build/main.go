// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command controlplane is etcd, kube-apiserver or kube-controller-manager, as the name says by which it is started.
// What the three share is compiled and linked once. It contains their own commands, and nothing else.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as in the mains of Kubernetes
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	}
	name := filepath.Base(os.Args[0])
	command, found := commands[name]
	switch {
	case found:
		os.Exit(cli.Run(command()))
	case name == "etcd":
		etcdmain.Main(os.Args)
	default:
		fmt.Fprintln(os.Stderr, name+": start this program as etcd, kube-apiserver or kube-controller-manager")
		os.Exit(2)
	}
}
