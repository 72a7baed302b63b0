// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// PulsarHosts are the hosts that may be called and receive the credentials. For --pulsar-admin-url only its port is
// allowed, and only with TLS if the URL is https.
func (o *Options) PulsarHosts() []string {
	hosts := append([]string(nil), o.AllowedPulsarHosts...)
	if own, err := backlog.ParseAdminURL(o.PulsarAdminURL); err == nil {
		hosts = append(hosts, own)
	}
	return hosts
}

// OwnCredentials returns which credentials the flags have, for clusters with credentials that cannot be read.
func (o *Options) OwnCredentials() target.OwnCredentials {
	return target.OwnCredentials{
		Authenticates: o.PulsarTokenFile != "" || o.PulsarAuthPlugin != "",
		TrustsMore:    o.PulsarCAFile != "",
	}
}
