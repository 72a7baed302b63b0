// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
)

// PulsarHosts are the hosts that may be called and be shown the credentials.
func (o *Options) PulsarHosts() []string {
	hosts := append([]string(nil), o.AllowedPulsarHosts...)
	if u, err := url.Parse(o.PulsarAdminURL); err == nil && u.Host != "" {
		hosts = append(hosts, u.Host)
	}
	return hosts
}

// PrometheusSelectors are the label matchers of clusters by their admin URL, or what is wrong with them.
func (o *Options) PrometheusSelectors() (map[string]string, error) {
	selectors := map[string]string{}
	for _, text := range o.PrometheusSelector {
		name, matchers, _ := strings.Cut(text, "=")
		cluster, err := backlog.ParseAdminURL(name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--prometheus-selector begins with %s: it %w", redacted(name), err)
		case strings.TrimSpace(matchers) == "":
			return nil, fmt.Errorf(`--prometheus-selector is %q: it must have label matchers, such as %s=cluster="eu"`, text, cluster)
		case selectors[cluster] != "":
			return nil, fmt.Errorf("--prometheus-selector has %s twice: it must have each cluster once", cluster)
		}
		selectors[cluster] = matchers
	}
	return selectors, nil
}

// OwnCredentials says what the flags give for clusters whose own credentials cannot be read.
func (o *Options) OwnCredentials() controllers.OwnCredentials {
	return controllers.OwnCredentials{Authenticates: o.PulsarTokenFile != "" || o.PulsarAuthPlugin != "", TrustsMore: o.PulsarCAFile != ""}
}

// LeaseNamespaceOr returns the namespace of the Lease: the flag, or that of the ServiceAccount whose files are in the
// directory, which in a pod is serviceAccountDir.
func (o *Options) LeaseNamespaceOr(dir string) (string, error) {
	if o.LeaseNamespace != "" {
		return o.LeaseNamespace, nil
	}
	content, err := os.ReadFile(filepath.Join(dir, "namespace"))
	if err != nil {
		return "", fmt.Errorf("reading the pod's namespace: %w; set --lease-namespace outside of a cluster", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// ServiceKey is the adapter's Service.
func (o *Options) ServiceKey(leaseNamespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(o.ServiceNamespace, leaseNamespace), Name: o.ServiceName}
}

// serviceAccountDir is where a pod finds its ServiceAccount.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
