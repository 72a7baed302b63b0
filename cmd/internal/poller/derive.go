// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// PulsarHosts are the hosts that may be called and receive the credentials. Of --pulsar-admin-url it is the one port,
// and only TLS if it is https.
func (o *Options) PulsarHosts() []string {
	hosts := append([]string(nil), o.AllowedPulsarHosts...)
	if own, err := backlog.ParseAdminURL(o.PulsarAdminURL); err == nil {
		hosts = append(hosts, own)
	}
	return hosts
}

// OwnCredentials says what the flags have for clusters with credentials of their own that cannot be read.
func (o *Options) OwnCredentials() target.OwnCredentials {
	return target.OwnCredentials{
		Authenticates: o.PulsarTokenFile != "" || o.PulsarAuthPlugin != "",
		TrustsMore:    o.PulsarCAFile != "",
	}
}
