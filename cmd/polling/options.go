// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package polling

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// Options are the flags that say where Pulsar is and how it is measured.
type Options struct {
	PulsarAdminURL        string
	AllowedPulsarHosts    []string
	PulsarTokenFile       string
	PulsarAuthPlugin      string
	PulsarAuthParamsFile  string
	PulsarCAFile          string
	AllowedOAuth2Issuers  []string
	FunctionCredentials   string
	WorkerCredentials     string
	PulsarTimeout         time.Duration
	MaxRequestsPerCluster int
	MaxRequestsPerSecond  int

	PollInterval time.Duration
	RateWindow   time.Duration
	StaleAfter   time.Duration

	InstanceMetrics string
	BulkSource      string
}

// Words of --bulk-source.
const (
	bulkNone        = "None"
	bulkBrokerStats = "BrokerStats"
)

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{
		FunctionCredentials:   string(target.UseFunctionCredentials),
		WorkerCredentials:     string(target.PolicyWorkerCredentials),
		PulsarTimeout:         3 * time.Second,
		MaxRequestsPerCluster: 16,
		MaxRequestsPerSecond:  pulsar.DefaultMaxRequestsPerSecondPerHost,

		PollInterval: 10 * time.Second,
		RateWindow:   10 * time.Second,
		StaleAfter:   time.Minute,

		InstanceMetrics: string(target.PodInstanceMetrics),
		BulkSource:      bulkNone,
	}
}

// PulsarFlags are those of the section "Pulsar" in the help text of a program, such as adapter.
func (o *Options) PulsarFlags(program string) *pflag.FlagSet {
	fs := pflag.NewFlagSet("pulsar", pflag.ContinueOnError)
	fs.StringVar(&o.PulsarAdminURL, "pulsar-admin-url", o.PulsarAdminURL,
		"Admin service of the Pulsar cluster where neither policy nor target names one, such as "+
			"http://pulsar-broker.pulsar:8080.")
	fs.StringSliceVar(&o.AllowedPulsarHosts, "allowed-pulsar-hosts", o.AllowedPulsarHosts,
		"Hosts that policies, targets and redirects may name, and that are shown the credentials: host, "+
			"host:port or a URL such as "+
			"https://host:port, \"*.\" for all below. --pulsar-admin-url is always allowed.")
	fs.StringVar(&o.PulsarTokenFile, "pulsar-token-file", o.PulsarTokenFile,
		"File with the token for Pulsar; read for every request, so it may change.")
	fs.StringVar(&o.PulsarAuthPlugin, "pulsar-auth-plugin", o.PulsarAuthPlugin,
		"authPlugin of Pulsar's client.conf, instead of --pulsar-token-file: token, tls, basic, oauth2 or their class names.")
	fs.StringVar(&o.PulsarAuthParamsFile, "pulsar-auth-params-file", o.PulsarAuthParamsFile,
		"File with authParams of Pulsar's client.conf; it and the files that it names are read for every request.")
	fs.StringSliceVar(&o.AllowedOAuth2Issuers, "allowed-oauth2-issuers", o.AllowedOAuth2Issuers,
		"URLs of OAuth2 issuers that credentials of policies and targets may ask for tokens. That of "+
			"--pulsar-auth-params-file is always allowed.")
	fs.StringVar(&o.PulsarCAFile, "pulsar-ca-file", o.PulsarCAFile,
		"File with PEM certificates that sign Pulsar's, which may change; default: the system's.")
	fs.StringVar(&o.FunctionCredentials, "function-credentials", o.FunctionCredentials,
		"What becomes of the credentials for Pulsar that Functions, Sinks, Sources and policies name: Use, or Ignore to "+
			"show the "+program+"'s own and never read a Secret.")
	fs.StringVar(&o.WorkerCredentials, "worker-credentials", o.WorkerCredentials,
		"The credentials that function workers see, which change what they run: Policy for those of the policy's "+
			"authSecret alone, or Own for the "+program+"'s own where it has none, so that a policy of any namespace may "+
			"scale whatever those may change.")
	fs.DurationVar(&o.PulsarTimeout, "pulsar-timeout", o.PulsarTimeout,
		"How long Pulsar may take to answer, from 10ms to 1m.")
	fs.IntVar(&o.MaxRequestsPerCluster, "max-requests-per-cluster", o.MaxRequestsPerCluster,
		"Requests under way to one Pulsar cluster at once, from 1 to 1000.")
	fs.IntVar(&o.MaxRequestsPerSecond, "max-requests-per-second", o.MaxRequestsPerSecond,
		"Requests a second to one host of Pulsar, from 1 to 100000; a broker with httpRequestsLimitEnabled allows 100 by "+
			"default.")
	return fs
}

// MeasuringFlags are those of the section "Measuring".
func (o *Options) MeasuringFlags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("measuring", pflag.ContinueOnError)
	fs.DurationVar(&o.PollInterval, "poll-interval", o.PollInterval,
		"Time between two requests about one topic, from 1s to 5m.")
	fs.DurationVar(&o.RateWindow, "rate-window", o.RateWindow,
		"Time that rates are measured over where answers come more often, from 1s to 10m.")
	fs.DurationVar(&o.StaleAfter, "stale-after", o.StaleAfter,
		"Age at which an answer of Pulsar no longer counts, at least --rate-window and 3 times --poll-interval, at most 1h.")
	fs.StringVar(&o.InstanceMetrics, "instance-metrics", o.InstanceMetrics,
		"Where instances are asked for what they count themselves (busy time, exceptions): Pods, which takes the right to "+
			"watch pods, and asks function workers for theirs; or Off.")
	fs.StringVar(&o.BulkSource, "bulk-source", o.BulkSource,
		"What confirms in bulk that topics have no work, so that they are asked about less often: None or "+
			"BrokerStats (a superuser's). Takes --stale-after from 3m on.")
	return fs
}
