// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package polling

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// PulsarHosts are the hosts that may be called and be shown the credentials. Of that of the flags it is the one port,
// and not in clear text where the flags say TLS.
func (o *Options) PulsarHosts() []string {
	hosts := append([]string(nil), o.AllowedPulsarHosts...)
	if own, err := backlog.ParseAdminURL(o.PulsarAdminURL); err == nil {
		hosts = append(hosts, own)
	}
	return hosts
}

// OwnCredentials says what the flags give for clusters with credentials of their own that cannot be read.
func (o *Options) OwnCredentials() target.OwnCredentials {
	return target.OwnCredentials{
		Authenticates: o.PulsarTokenFile != "" || o.PulsarAuthPlugin != "",
		TrustsMore:    o.PulsarCAFile != "",
	}
}
