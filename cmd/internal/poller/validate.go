// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// Check returns everything that is wrong, each with flag, value and bound.
func (o *Options) Check() []error {
	return slices.Concat(o.checkPulsar(), o.checkMeasuring())
}

func (o *Options) checkPulsar() []error {
	var p flags.Problems
	if o.PulsarAdminURL != "" {
		if _, err := backlog.ParseAdminURL(o.PulsarAdminURL); err != nil {
			p.Add("--pulsar-admin-url is %s: it %w", flags.Redacted(o.PulsarAdminURL), err)
		}
	}
	p = append(p, o.checkCredentials()...)
	p.OneOf("function-credentials", string(o.FunctionCredentials), string(target.UseFunctionCredentials),
		string(target.IgnoreFunctionCredentials))
	p.OneOf("worker-credentials", string(o.WorkerCredentials), string(target.PolicyWorkerCredentials),
		string(target.OwnWorkerCredentials))
	p.Between("pulsar-timeout", o.PulsarTimeout, 10*time.Millisecond, time.Minute)
	if o.MaxRequestsPerCluster < 1 || o.MaxRequestsPerCluster > 1000 {
		p.Add("--max-requests-per-cluster is %d: it must be from 1 to 1000", o.MaxRequestsPerCluster)
	}
	if o.MaxRequestsPerSecond < 1 || o.MaxRequestsPerSecond > 100_000 {
		p.Add("--max-requests-per-second is %d: it must be from 1 to 100000", o.MaxRequestsPerSecond)
	}
	if most := o.Bounds.Subscription; most < 1 || most > 100_000 {
		p.Add("%s is %d: it must be from 1 to 100000", backlog.SubscriptionBoundFlag, most)
	}
	if most := o.Bounds.Namespace; most < 1 || most > 1_000_000 {
		p.Add("%s is %d: it must be from 1 to 1000000", backlog.NamespaceBoundFlag, most)
	}
	return p
}

func (o *Options) checkCredentials() []error {
	var p flags.Problems
	if err := authparams.CheckPlugin(o.PulsarAuthPlugin); err != nil {
		p.Add("--pulsar-auth-plugin is %q: it %w", o.PulsarAuthPlugin, err)
	}
	if o.PulsarAuthPlugin != "" && o.PulsarTokenFile != "" {
		p.Add("--pulsar-auth-plugin is %q and --pulsar-token-file is %q: only one of them may be set", o.PulsarAuthPlugin,
			o.PulsarTokenFile)
	}
	if (o.PulsarAuthPlugin == "") != (o.PulsarAuthParamsFile == "") {
		p.Add("--pulsar-auth-plugin is %q and --pulsar-auth-params-file is %q: both or none must be set", o.PulsarAuthPlugin,
			o.PulsarAuthParamsFile)
	}
	for _, issuer := range o.AllowedOAuth2Issuers {
		if _, err := authparams.ParseIssuer(issuer); err != nil {
			p.Add("--allowed-oauth2-issuers has %s: it %w", flags.Redacted(issuer), err)
		}
	}
	return p
}

// pollsUntilStale is how many consecutive polls must fail before a reading is stale: one lost response and its retry
// must not hold replicas.
const pollsUntilStale = 3

func (o *Options) checkMeasuring() []error {
	var p flags.Problems
	p.Between("poll-interval", o.PollInterval, time.Second, 5*time.Minute)
	p.Between("rate-window", o.RateWindow, time.Second, 10*time.Minute)
	if o.StaleAfter > time.Hour {
		p.Add("--stale-after is %s: it must be at most 1h", o.StaleAfter)
	}
	if least := pollsUntilStale * o.PollInterval; o.StaleAfter < least {
		p.Add("--stale-after is %s: it must be at least %s, which is %d times --poll-interval (%s)", o.StaleAfter, least,
			pollsUntilStale, o.PollInterval)
	}
	p.OneOf("instance-metrics", string(o.InstanceMetrics), string(target.PodInstanceMetrics),
		string(target.NoInstanceMetrics))
	if o.StaleAfter < o.RateWindow {
		p.Add("--stale-after is %s: it must be at least --rate-window (%s)", o.StaleAfter, o.RateWindow)
	}
	return p
}
