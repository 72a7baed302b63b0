// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// Options are the flags for Pulsar and for polling.
type Options struct {
	PulsarAdminURL        string
	AllowedPulsarHosts    []string
	Own                   auth.Own
	AllowedOAuth2Issuers  []string
	FunctionCredentials   target.FunctionCredentials
	WorkerCredentials     target.WorkerCredentials
	PulsarTimeout         time.Duration
	MaxRequestsPerCluster int
	MaxRequestsPerSecond  int
	Bounds                backlog.Bounds
	// WakeByPush is a flag of the adapter.
	WakeByPush bool

	PollInterval time.Duration
	RateWindow   time.Duration
	StaleAfter   time.Duration

	// InstanceMetrics is where the counters of instances are read.
	InstanceMetrics string
}

// The values of InstanceMetrics.
const (
	PodInstanceMetrics = "Pods"
	// NoInstanceMetrics needs no right to read pods.
	NoInstanceMetrics = "Off"
)

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{
		FunctionCredentials:   target.UseFunctionCredentials,
		WorkerCredentials:     target.PolicyWorkerCredentials,
		PulsarTimeout:         3 * time.Second,
		MaxRequestsPerCluster: 16,
		MaxRequestsPerSecond:  pulsar.DefaultMaxRequestsPerSecondPerHost,
		Bounds:                backlog.Bounds{Subscription: 2000, Namespace: 5000},

		PollInterval: 10 * time.Second,
		RateWindow:   10 * time.Second,
		StaleAfter:   time.Minute,

		InstanceMetrics: PodInstanceMetrics,
	}
}

// AddPulsarFlags adds section "Pulsar" to the flags of a program, such as adapter.
func (o *Options) AddPulsarFlags(fs *pflag.FlagSet, program string) {
	fs.StringVar(&o.PulsarAdminURL, "pulsar-admin-url", o.PulsarAdminURL,
		"Admin service of the Pulsar cluster where neither policy nor target names one, such as "+
			"http://pulsar-broker.pulsar:8080.")
	fs.StringSliceVar(&o.AllowedPulsarHosts, "allowed-pulsar-hosts", o.AllowedPulsarHosts,
		"Hosts that policies, targets, redirects and lookups may name and that receive the credentials: host, host:port or "+
			"a URL such as https://host:port, \"*.\" for all below. The "+program+"'s own credentials go over https only, or "+
			"to an entry with http:// or pulsar://. --pulsar-admin-url is always allowed.")
	fs.StringVar(&o.Own.TokenFile, "pulsar-token-file", o.Own.TokenFile,
		"File with the token for Pulsar; read for every request, so it may change.")
	fs.StringVar(&o.Own.Plugin, "pulsar-auth-plugin", o.Own.Plugin,
		"authPlugin of Pulsar's client.conf, instead of --pulsar-token-file: token, tls, basic, oauth2 or their class names.")
	fs.StringVar(&o.Own.ParamsFile, "pulsar-auth-params-file", o.Own.ParamsFile,
		"File with authParams of Pulsar's client.conf; it and the files that it names are read for every request.")
	fs.StringSliceVar(&o.AllowedOAuth2Issuers, "allowed-oauth2-issuers", o.AllowedOAuth2Issuers,
		"URLs of OAuth2 issuers that credentials of policies and targets may request tokens from. That of "+
			"--pulsar-auth-params-file is always allowed.")
	fs.StringVar(&o.Own.CAFile, "pulsar-ca-file", o.Own.CAFile,
		"File with PEM certificates that sign Pulsar's, which may change; default: the system's.")
	fs.StringVar((*string)(&o.FunctionCredentials), "function-credentials", string(o.FunctionCredentials),
		"Credentials for Pulsar that Functions, Sinks, Sources and policies name: Use sends them, Ignore sends the "+program+
			"'s own and reads no Secret.")
	fs.StringVar((*string)(&o.WorkerCredentials), "worker-credentials", string(o.WorkerCredentials),
		"Credentials that function workers receive, with which they change what they run: Policy sends only those of the "+
			"policy's authSecret; Own sends the "+program+"'s own where it has none, so that a policy of any namespace may "+
			"scale whatever those may change.")
	fs.DurationVar(&o.PulsarTimeout, "pulsar-timeout", o.PulsarTimeout,
		"Timeout of a request to Pulsar, from 10ms to 1m.")
	fs.IntVar(&o.MaxRequestsPerCluster, "max-requests-per-cluster", o.MaxRequestsPerCluster,
		"Concurrent requests to one admin URL, from 1 to 1000, in which namespaces take turns.")
	fs.IntVar(&o.MaxRequestsPerSecond, "max-requests-per-second", o.MaxRequestsPerSecond,
		"Requests a second to one host of Pulsar, from 1 to 100000; a broker with httpRequestsLimitEnabled allows 100 by "+
			"default.")
	fs.IntVar(&o.Bounds.Subscription, "max-topics-per-subscription", o.Bounds.Subscription,
		"Topics of one subscription, matches of its patterns included, from 1 to 100000; a subscription with more is not "+
			"read (TooManyTopics).")
	fs.IntVar(&o.Bounds.Namespace, "max-topics-per-namespace", o.Bounds.Namespace,
		"Topics that the policies and triggers of one Kubernetes namespace follow, once for each subscription, from 1 to "+
			"1000000; subscriptions beyond it are not read (TooManyTopics).")
}

// AddMeasuringFlags adds section "Measuring".
func (o *Options) AddMeasuringFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.PollInterval, "poll-interval", o.PollInterval,
		"Time between two requests about one topic, from 1s to 5m. The adapter requests topics at rest every 30s: idle for "+
			"10m, without a replica to remove, and with a latencyObjective of 5m or more.")
	fs.DurationVar(&o.RateWindow, "rate-window", o.RateWindow,
		"Time that rates are measured over, or up to a tenth less, from 1s to 10m.")
	fs.DurationVar(&o.StaleAfter, "stale-after", o.StaleAfter,
		"Age at which a reading is stale, at least --rate-window and 3 times --poll-interval, at most 1h.")
	fs.StringVar(&o.InstanceMetrics, "instance-metrics", o.InstanceMetrics,
		"Where the instances' own counters (busy time, exceptions) are read: Pods, which needs the permission to watch pods "+
			"and reads those of function workers too; or Off.")
}

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
	p.Credentials(o.Own)
	for _, issuer := range o.AllowedOAuth2Issuers {
		if _, err := authparams.ParseIssuer(issuer); err != nil {
			p.Add("--allowed-oauth2-issuers has %s: it %w", flags.Redacted(issuer), err)
		}
	}
	p.OneOf("function-credentials", string(o.FunctionCredentials), string(target.UseFunctionCredentials),
		string(target.IgnoreFunctionCredentials))
	p.OneOf("worker-credentials", string(o.WorkerCredentials), string(target.PolicyWorkerCredentials),
		string(target.OwnWorkerCredentials))
	flags.Between(&p, "pulsar-timeout", o.PulsarTimeout, 10*time.Millisecond, time.Minute)
	flags.Between(&p, "max-requests-per-cluster", o.MaxRequestsPerCluster, 1, 1000)
	flags.Between(&p, "max-requests-per-second", o.MaxRequestsPerSecond, 1, 100_000)
	flags.Between(&p, "max-topics-per-subscription", o.Bounds.Subscription, 1, 100_000)
	flags.Between(&p, "max-topics-per-namespace", o.Bounds.Namespace, 1, 1_000_000)
	return p
}

// pollsUntilStale is how many consecutive polls must fail before a reading is stale: one lost response and its retry
// must not hold replicas.
const pollsUntilStale = 3

func (o *Options) checkMeasuring() []error {
	var p flags.Problems
	flags.Between(&p, "poll-interval", o.PollInterval, time.Second, 5*time.Minute)
	flags.Between(&p, "rate-window", o.RateWindow, time.Second, 10*time.Minute)
	if o.StaleAfter > time.Hour {
		p.Add("--stale-after is %s: it must be at most 1h", o.StaleAfter)
	}
	if least := pollsUntilStale * o.PollInterval; o.StaleAfter < least {
		p.Add("--stale-after is %s: it must be at least %s, which is %d times --poll-interval (%s)", o.StaleAfter, least,
			pollsUntilStale, o.PollInterval)
	}
	p.OneOf("instance-metrics", o.InstanceMetrics, PodInstanceMetrics, NoInstanceMetrics)
	if o.StaleAfter < o.RateWindow {
		p.Add("--stale-after is %s: it must be at least --rate-window (%s)", o.StaleAfter, o.RateWindow)
	}
	return p
}

// PulsarHosts are the hosts that may be called and receive the credentials. For --pulsar-admin-url only its port is
// allowed, and only with TLS if the URL is https.
func (o *Options) PulsarHosts() []string {
	hosts := append([]string(nil), o.AllowedPulsarHosts...)
	if own, err := backlog.ParseAdminURL(o.PulsarAdminURL); err == nil {
		hosts = append(hosts, own)
	}
	return hosts
}

// Targets are the fields that the flags set, and the worker. Own credentials are for clusters with credentials that
// cannot be read.
func (o *Options) Targets(worker target.Worker) target.Config {
	return target.Config{
		DefaultAdminURL: o.PulsarAdminURL, FunctionCredentials: o.FunctionCredentials,
		OwnCredentials: target.OwnCredentials{
			Authenticates: o.Own.TokenFile != "" || o.Own.Plugin != "",
			TrustsMore:    o.Own.CAFile != "",
		},
		WorkerCredentials: o.WorkerCredentials, Worker: worker, PollInterval: o.PollInterval,
	}
}
