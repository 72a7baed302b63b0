// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
)

// Validate returns everything that is wrong, each with flag, value and bound.
func (o *Options) Validate() error {
	problems := slices.Concat(o.checkPulsar(), o.checkMeasuring(), o.checkLease(), o.checkService(), o.checkProcess(), o.Serving.Validate())
	return errors.Join(problems...)
}

// problems collects what is wrong.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf(format, args...))
}

// between checks a flag against its bounds.
func (p *problems) between(flag string, value, least, most time.Duration) {
	if value < least || value > most {
		p.add("--%s is %s: it must be from %s to %s", flag, value, least, most)
	}
}

// oneOf checks a flag against the words that it may be.
func (p *problems) oneOf(flag, value string, words ...string) {
	if !slices.Contains(words, value) {
		p.add("--%s is %q: it must be one of %s", flag, value, strings.Join(words, ", "))
	}
}

func (o *Options) checkPulsar() []error {
	var p problems
	if o.PulsarAdminURL != "" {
		if _, err := backlog.ParseAdminURL(o.PulsarAdminURL); err != nil {
			p.add("--pulsar-admin-url is %s: it %w", redacted(o.PulsarAdminURL), err)
		}
	}
	p = append(p, o.checkCredentials()...)
	p.oneOf("function-credentials", o.FunctionCredentials, string(controllers.UseFunctionCredentials), string(controllers.IgnoreFunctionCredentials))
	p.oneOf("worker-credentials", o.WorkerCredentials, string(controllers.PolicyWorkerCredentials), string(controllers.OwnWorkerCredentials))
	p.between("pulsar-timeout", o.PulsarTimeout, 10*time.Millisecond, time.Minute)
	if o.MaxRequestsPerCluster < 1 || o.MaxRequestsPerCluster > 1000 {
		p.add("--max-requests-per-cluster is %d: it must be from 1 to 1000", o.MaxRequestsPerCluster)
	}
	if o.MaxRequestsPerSecond < 1 || o.MaxRequestsPerSecond > 100_000 {
		p.add("--max-requests-per-second is %d: it must be from 1 to 100000", o.MaxRequestsPerSecond)
	}
	return p
}

func (o *Options) checkCredentials() []error {
	var p problems
	if err := pulsar.CheckPlugin(o.PulsarAuthPlugin); err != nil {
		p.add("--pulsar-auth-plugin is %q: it %w", o.PulsarAuthPlugin, err)
	}
	if o.PulsarAuthPlugin != "" && o.PulsarTokenFile != "" {
		p.add("--pulsar-auth-plugin is %q and --pulsar-token-file is %q: only one of them may be set", o.PulsarAuthPlugin, o.PulsarTokenFile)
	}
	if (o.PulsarAuthPlugin == "") != (o.PulsarAuthParamsFile == "") {
		p.add("--pulsar-auth-plugin is %q and --pulsar-auth-params-file is %q: both or none must be set", o.PulsarAuthPlugin,
			o.PulsarAuthParamsFile)
	}
	for _, issuer := range o.AllowedOAuth2Issuers {
		if _, err := pulsar.ParseIssuer(issuer); err != nil {
			p.add("--allowed-oauth2-issuers has %s: it %w", redacted(issuer), err)
		}
	}
	return p
}

// redacted quotes a URL without its password.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "not a URL"
	}
	return fmt.Sprintf("%q", u.Redacted())
}

// pollsUntilStale is how many polls in a row must fail before what is known no longer counts: one lost answer, and the
// retry of it, must not freeze an autoscaler.
const pollsUntilStale = 3

func (o *Options) checkMeasuring() []error {
	var p problems
	p.between("worker-update-interval", o.WorkerUpdateInterval, time.Second, time.Hour)
	p.between("poll-interval", o.PollInterval, time.Second, 5*time.Minute)
	p.between("rate-window", o.RateWindow, time.Second, 10*time.Minute)
	if o.StaleAfter > time.Hour {
		p.add("--stale-after is %s: it must be at most 1h", o.StaleAfter)
	}
	if least := pollsUntilStale * o.PollInterval; o.StaleAfter < least {
		p.add("--stale-after is %s: it must be at least %s, which is %d times --poll-interval (%s)", o.StaleAfter, least,
			pollsUntilStale, o.PollInterval)
	}
	p = append(p, o.checkBulk()...)
	p.oneOf("instance-metrics", o.InstanceMetrics, string(controllers.PodInstanceMetrics), string(controllers.NoInstanceMetrics))
	if o.StaleAfter < o.RateWindow {
		p.add("--stale-after is %s: it must be at least --rate-window (%s)", o.StaleAfter, o.RateWindow)
	}
	return p
}

// leastStaleWithBulk leaves room for a bulk answer that is a minute old when it comes, for the minute until the next, and for
// one that is lost: else bulk answers spare nothing.
const leastStaleWithBulk = 3 * time.Minute

func (o *Options) checkBulk() []error {
	var p problems
	p.oneOf("bulk-source", o.BulkSource, bulkNone, bulkBrokerStats, bulkPrometheus)
	if o.BulkSource != bulkNone && o.StaleAfter < leastStaleWithBulk {
		p.add("--stale-after is %s: it must be at least %s with --bulk-source=%s, whose answers are up to a minute old and come once a minute",
			o.StaleAfter, leastStaleWithBulk, o.BulkSource)
	}
	if (o.BulkSource == bulkPrometheus) != (o.PrometheusURL != "") {
		p.add("--bulk-source is %q and --prometheus-url is %s: both or none must name Prometheus", o.BulkSource, redacted(o.PrometheusURL))
	}
	for _, file := range []struct{ flag, path string }{
		{"prometheus-token-file", o.PrometheusTokenFile}, {"prometheus-ca-file", o.PrometheusCAFile},
	} {
		if file.path != "" && o.BulkSource != bulkPrometheus {
			p.add("--%s is %q and --bulk-source is %q: it is for Prometheus alone", file.flag, file.path, o.BulkSource)
		}
	}
	if len(o.PrometheusSelector) > 0 && o.BulkSource != bulkPrometheus {
		p.add("--prometheus-selector is set and --bulk-source is %q: it is for Prometheus alone", o.BulkSource)
	}
	if _, err := o.PrometheusSelectors(); err != nil {
		p = append(p, err)
	}
	return p
}

// maxLeaseRetryPeriod leaves room for two lost renewals before the other replicas take a holder that has been silent for
// 60 s for gone (controllers.DecisionMaker) and stop to serve its decisions.
const maxLeaseRetryPeriod = 20 * time.Second

func (o *Options) checkLease() []error {
	var p problems
	for _, message := range validation.IsDNS1123Subdomain(o.LeaseName) {
		p.add("--lease-name is %q: %s", o.LeaseName, message)
	}
	if o.LeaseNamespace != "" {
		for _, message := range validation.IsDNS1123Label(o.LeaseNamespace) {
			p.add("--lease-namespace is %q: %s", o.LeaseNamespace, message)
		}
	}
	p.between("lease-duration", o.LeaseDuration, 2*time.Second, 5*time.Minute)
	if o.LeaseDuration%time.Second != 0 {
		p.add("--lease-duration is %s: it must be whole seconds, as a Lease has no smaller", o.LeaseDuration)
	}
	if o.LeaseRenewDeadline >= o.LeaseDuration {
		p.add("--lease-renew-deadline is %s: it must be below --lease-duration (%s), else two replicas decide at once",
			o.LeaseRenewDeadline, o.LeaseDuration)
	}
	p.between("lease-retry-period", o.LeaseRetryPeriod, 100*time.Millisecond, maxLeaseRetryPeriod)
	if o.LeaseRetryPeriod > o.LeaseRenewDeadline/2 {
		p.add("--lease-retry-period is %s: it must be at most half of --lease-renew-deadline (%s)", o.LeaseRetryPeriod,
			o.LeaseRenewDeadline)
	}
	return p
}

func (o *Options) checkService() []error {
	var p problems
	for _, message := range validation.IsDNS1035Label(o.ServiceName) {
		p.add("--service-name is %q: %s", o.ServiceName, message)
	}
	if o.ServiceNamespace != "" {
		for _, message := range validation.IsDNS1123Label(o.ServiceNamespace) {
			p.add("--service-namespace is %q: %s", o.ServiceNamespace, message)
		}
	}
	return p
}

func (o *Options) checkProcess() []error {
	var p problems
	p.between("shutdown-delay", o.ShutdownDelay, 0, time.Minute)
	p.oneOf("log-level", o.LogLevel, logLevels()...)
	p.oneOf("log-format", o.LogFormat, logFormats()...)
	if o.Serving.SecureServing.BindPort == 0 { // which the library takes for "do not serve"
		p.add("--secure-port is 0: it must be from 1 to 65535, since metrics and probes are served there")
	}
	return p
}
