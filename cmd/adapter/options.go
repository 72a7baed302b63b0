// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd/options"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
)

// Options are the flags of the adapter.
type Options struct {
	// Serving are the flags of the API server library: port, certificates, delegated authentication and authorization.
	Serving *options.CustomMetricsAdapterServerOptions

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
	WorkerUpdateInterval  time.Duration

	PollInterval time.Duration
	RateWindow   time.Duration
	StaleAfter   time.Duration

	InstanceMetrics     string
	BulkSource          string
	PrometheusURL       string
	PrometheusTokenFile string
	PrometheusCAFile    string
	PrometheusSelector  []string

	LeaseName          string
	LeaseNamespace     string
	LeaseDuration      time.Duration
	LeaseRenewDeadline time.Duration
	LeaseRetryPeriod   time.Duration

	ServiceName      string
	ServiceNamespace string
	ExternalMetrics  bool

	Kubeconfig    string
	ShutdownDelay time.Duration
	LogLevel      string
	LogFormat     string
}

// defaultPort is 10250 because private clusters let the control plane reach nodes and pods on 443 and 10250 only, and
// the first needs root.
const defaultPort = 10250

// NewOptions returns the defaults.
func NewOptions() *Options {
	serving := options.NewCustomMetricsAdapterServerOptions()
	serving.SecureServing.BindPort = defaultPort
	serving.SecureServing.ServerCert.CertDirectory = "" // without files a certificate in memory: the root is read-only
	serving.Features.EnableProfiling = false
	return &Options{
		Serving: serving,

		FunctionCredentials:   string(controllers.UseFunctionCredentials),
		WorkerCredentials:     string(controllers.PolicyWorkerCredentials),
		PulsarTimeout:         3 * time.Second,
		MaxRequestsPerCluster: 16,
		MaxRequestsPerSecond:  pulsar.DefaultMaxRequestsPerSecondPerHost,
		WorkerUpdateInterval:  controllers.DefaultWorkerUpdateInterval,

		PollInterval: 10 * time.Second,
		RateWindow:   10 * time.Second,
		StaleAfter:   time.Minute,

		InstanceMetrics: string(controllers.PodInstanceMetrics),
		BulkSource:      bulkNone,

		LeaseName:          "pulsar-autoscaler-adapter",
		LeaseDuration:      15 * time.Second,
		LeaseRenewDeadline: 10 * time.Second,
		LeaseRetryPeriod:   2 * time.Second,

		ServiceName: "adapter",

		ShutdownDelay: 5 * time.Second,
		LogLevel:      "info",
		LogFormat:     "json",
	}
}

// Words of --bulk-source.
const (
	bulkNone        = "None"
	bulkBrokerStats = "BrokerStats"
	bulkPrometheus  = "Prometheus"
)

// flagSection is a part of the help text.
type flagSection struct {
	title string
	flags *pflag.FlagSet
}

// sections returns all flags in the order of the help text.
func (o *Options) sections() []flagSection {
	serving := pflag.NewFlagSet("serving", pflag.ContinueOnError)
	o.Serving.SecureServing.AddFlags(serving)
	o.Serving.Authentication.AddFlags(serving)
	o.Serving.Authorization.AddFlags(serving)
	return []flagSection{
		{"Pulsar", o.pulsarFlags()},
		{"Measuring", o.measuringFlags()},
		{"Kubernetes", o.kubernetesFlags()},
		{"Process", o.processFlags()},
		{"Serving the metrics API", serving},
	}
}

func (o *Options) pulsarFlags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("pulsar", pflag.ContinueOnError)
	fs.StringVar(&o.PulsarAdminURL, "pulsar-admin-url", o.PulsarAdminURL,
		"Admin service of the Pulsar cluster where neither policy nor target names one, such as http://pulsar-broker.pulsar:8080.")
	fs.StringSliceVar(&o.AllowedPulsarHosts, "allowed-pulsar-hosts", o.AllowedPulsarHosts,
		"Hosts that policies, targets and redirects may name, and that are shown the credentials: host or host:port, \"*.\" for all below. The host of --pulsar-admin-url is always allowed.")
	fs.StringVar(&o.PulsarTokenFile, "pulsar-token-file", o.PulsarTokenFile,
		"File with the token for Pulsar; read for every request, so it may change.")
	fs.StringVar(&o.PulsarAuthPlugin, "pulsar-auth-plugin", o.PulsarAuthPlugin,
		"authPlugin of Pulsar's client.conf, instead of --pulsar-token-file: token, tls, basic, oauth2 or their class names.")
	fs.StringVar(&o.PulsarAuthParamsFile, "pulsar-auth-params-file", o.PulsarAuthParamsFile,
		"File with authParams of Pulsar's client.conf; it and the files that it names are read for every request.")
	fs.StringSliceVar(&o.AllowedOAuth2Issuers, "allowed-oauth2-issuers", o.AllowedOAuth2Issuers,
		"URLs of OAuth2 issuers that credentials of policies and targets may ask for tokens. That of --pulsar-auth-params-file is always allowed.")
	fs.StringVar(&o.PulsarCAFile, "pulsar-ca-file", o.PulsarCAFile,
		"File with PEM certificates that sign Pulsar's, which may change; default: the system's.")
	fs.StringVar(&o.FunctionCredentials, "function-credentials", o.FunctionCredentials,
		"What becomes of the credentials for Pulsar that Functions, Sinks, Sources and policies name: Use, or Ignore to show the adapter's own and never read a Secret.")
	fs.StringVar(&o.WorkerCredentials, "worker-credentials", o.WorkerCredentials,
		"Whose credentials function workers are shown, which change what they run: Policy for those of the policy's authSecret alone, or Own for the adapter's own where it has none, so that a policy of any namespace may scale whatever those may change.")
	fs.DurationVar(&o.PulsarTimeout, "pulsar-timeout", o.PulsarTimeout,
		"How long Pulsar may take to answer, from 10ms to 1m.")
	fs.IntVar(&o.MaxRequestsPerCluster, "max-requests-per-cluster", o.MaxRequestsPerCluster,
		"Requests under way to one Pulsar cluster at once, from 1 to 1000.")
	fs.IntVar(&o.MaxRequestsPerSecond, "max-requests-per-second", o.MaxRequestsPerSecond,
		"Requests a second to one host of Pulsar, from 1 to 100000; a broker with httpRequestsLimitEnabled allows 100 by default.")
	fs.DurationVar(&o.WorkerUpdateInterval, "worker-update-interval", o.WorkerUpdateInterval,
		"Least time between two changes of the parallelism of a function, sink or source that a function worker runs, from 1s to 1h: each restarts all its instances.")
	return fs
}

func (o *Options) measuringFlags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("measuring", pflag.ContinueOnError)
	fs.DurationVar(&o.PollInterval, "poll-interval", o.PollInterval,
		"Time between two requests about one topic, from 1s to 5m.")
	fs.DurationVar(&o.RateWindow, "rate-window", o.RateWindow,
		"Time that rates are measured over where answers come more often, from 1s to 10m.")
	fs.DurationVar(&o.StaleAfter, "stale-after", o.StaleAfter,
		"Age at which an answer of Pulsar no longer counts, at least --rate-window and 3 times --poll-interval, at most 1h.")
	fs.StringVar(&o.InstanceMetrics, "instance-metrics", o.InstanceMetrics,
		"Where instances are asked for what they count themselves (busy time, exceptions): Pods, which takes the right to watch pods, and asks function workers for theirs; or Off.")
	fs.StringVar(&o.BulkSource, "bulk-source", o.BulkSource,
		"What confirms in bulk that topics have no work, so that they are asked about less often: None, BrokerStats (a superuser's) or Prometheus. Takes --stale-after from 3m on.")
	fs.StringVar(&o.PrometheusURL, "prometheus-url", o.PrometheusURL,
		"Prometheus that scrapes the brokers, with --bulk-source=Prometheus, such as http://prometheus.monitoring:9090.")
	fs.StringVar(&o.PrometheusTokenFile, "prometheus-token-file", o.PrometheusTokenFile,
		"File with the bearer token for --prometheus-url; read for every query, so it may change.")
	fs.StringVar(&o.PrometheusCAFile, "prometheus-ca-file", o.PrometheusCAFile,
		"File with PEM certificates that sign Prometheus's, read once; default: the system's.")
	fs.StringArrayVar(&o.PrometheusSelector, "prometheus-selector", o.PrometheusSelector,
		`Which series are a Pulsar cluster's, where Prometheus has those of several: its admin URL, "=" and label matchers, such as http://pulsar-eu:8080=cluster="eu". Once for each cluster.`)
	return fs
}

func (o *Options) kubernetesFlags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("kubernetes", pflag.ContinueOnError)
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Kubeconfig file; default: the ServiceAccount of the pod.")
	fs.StringVar(&o.LeaseName, "lease-name", o.LeaseName,
		"Lease whose holder decides for all policies.")
	fs.StringVar(&o.LeaseNamespace, "lease-namespace", o.LeaseNamespace,
		"Namespace of the Lease; default: the pod's.")
	fs.DurationVar(&o.LeaseDuration, "lease-duration", o.LeaseDuration,
		"Time without renewal after which another replica takes over, in whole seconds from 2s to 5m.")
	fs.DurationVar(&o.LeaseRenewDeadline, "lease-renew-deadline", o.LeaseRenewDeadline,
		"Time after which a holder that cannot renew gives up, below --lease-duration.")
	fs.DurationVar(&o.LeaseRetryPeriod, "lease-retry-period", o.LeaseRetryPeriod,
		"Time between two attempts to get or renew the Lease, from 100ms to 20s and at most half of --lease-renew-deadline.")
	fs.StringVar(&o.ServiceName, "service-name", o.ServiceName,
		"Service of the adapter: whether the APIServices of the metrics APIs point to it decides if HorizontalPodAutoscalers can be used.")
	fs.StringVar(&o.ServiceNamespace, "service-namespace", o.ServiceNamespace,
		"Namespace of that Service; default: that of the Lease.")
	fs.BoolVar(&o.ExternalMetrics, "external-metrics", o.ExternalMetrics,
		"Serve the same metrics as external.metrics.k8s.io too, which one adapter of a cluster can have: KEDA and Datadog take it for themselves.")
	return fs
}

func (o *Options) processFlags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("process", pflag.ContinueOnError)
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay", o.ShutdownDelay,
		"Time for which requests are still answered after SIGTERM, until nobody sends any, from 0s to 1m; the pod's grace period must be longer.")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "Least severity that is logged: "+strings.Join(logLevels(), ", ")+".")
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "Form of log lines: "+strings.Join(logFormats(), ", ")+".")
	return fs
}

// ParseOptions parses and checks the arguments. It prints the help text and returns pflag.ErrHelp when asked for it.
func ParseOptions(args []string, help io.Writer) (*Options, error) {
	o := NewOptions()
	sections := o.sections()
	all := pflag.NewFlagSet("adapter", pflag.ContinueOnError)
	all.Usage = func() {} // printed below, by section
	for _, s := range sections {
		all.AddFlagSet(s.flags)
	}
	err := all.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil, errors.Join(err, printHelp(help, sections))
	case err != nil:
		return nil, fmt.Errorf("%w; see --help", err)
	case all.NArg() > 0:
		return nil, fmt.Errorf("argument %q is not a flag: flags look like --poll-interval=10s; see --help", all.Arg(0))
	}
	return o, o.Validate()
}

func printHelp(out io.Writer, sections []flagSection) error {
	text := strings.Builder{}
	text.WriteString("Usage: adapter [flags]\n\nScales Pulsar Functions: decides replicas and serves the custom metrics API.\n")
	for _, s := range sections {
		fmt.Fprintf(&text, "\n%s:\n\n%s", s.title, s.flags.FlagUsagesWrapped(120))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
