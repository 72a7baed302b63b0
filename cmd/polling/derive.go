// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package polling

import (
	"fmt"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
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

// PrometheusSelectors are the label matchers of clusters by their admin URL, or what is wrong with them.
func (o *Options) PrometheusSelectors() (map[string]string, error) {
	selectors := map[string]string{}
	for _, text := range o.PrometheusSelector {
		name, matchers, _ := strings.Cut(text, "=")
		cluster, err := backlog.ParseAdminURL(name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--prometheus-selector begins with %s: it %w", flags.Redacted(name), err)
		case strings.TrimSpace(matchers) == "":
			return nil, fmt.Errorf(`--prometheus-selector is %q: it must have label matchers, such as %s=cluster="eu"`, text,
				cluster)
		case selectors[cluster] != "":
			return nil, fmt.Errorf("--prometheus-selector has %s twice: it must have each cluster once", cluster)
		}
		selectors[cluster] = matchers
	}
	return selectors, nil
}

// OwnCredentials says what the flags give for clusters whose own credentials cannot be read.
func (o *Options) OwnCredentials() controllers.OwnCredentials {
	return controllers.OwnCredentials{
		Authenticates: o.PulsarTokenFile != "" || o.PulsarAuthPlugin != "",
		TrustsMore:    o.PulsarCAFile != "",
	}
}
