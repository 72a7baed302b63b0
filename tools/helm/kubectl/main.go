// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Kubectl is Kubernetes' kubectl, which has no module of its own: a tool of the tests that run the guides.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
