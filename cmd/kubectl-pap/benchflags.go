// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
)

// clusterFlags are kubectl's flags that select a cluster and a user.
type clusterFlags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
}

func newClusterFlags() clusterFlags {
	return clusterFlags{clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}}
}

// addTo adds the flags except the namespace: runs create their own.
func (c clusterFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&c.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "File with the kubeconfig.")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.LongName = ""
	clientcmd.BindOverrideFlags(c.overrides, flags, names)
}

// addNamespace adds the namespace of existing objects.
func (c clusterFlags) addNamespace(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(&c.overrides.Context.Namespace, clientcmd.FlagNamespace, "n", "", usage)
}

func (c clusterFlags) config() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, c.overrides)
}

func (c clusterFlags) client() (client.Client, error) {
	config, err := c.config().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return run.NewClient(config)
}

// namespace returns the namespace of the flag, else of the context.
func (c clusterFlags) namespace() (string, error) {
	namespace, _, err := c.config().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return namespace, nil
}

// addAccess adds the adapter's flags for Pulsar.
func addAccess(flags *pflag.FlagSet, access *run.Access) {
	flags.StringVar(&access.TokenFile, "pulsar-token-file", "", "File with a token for Pulsar.")
	flags.StringVar(&access.Plugin, "pulsar-auth-plugin", "",
		"authPlugin of Pulsar's client.conf: token, tls, basic, oauth2 or a class of these.")
	flags.StringVar(&access.ParamsFile, "pulsar-auth-params-file", "",
		"File with authParams of Pulsar's client.conf for --pulsar-auth-plugin.")
	flags.StringVar(&access.CAFile, "pulsar-ca-file", "", "PEM file of the authorities that signed Pulsar's certificates.")
}
