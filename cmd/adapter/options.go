// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd/options"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/kube"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/poller"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/program"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Options are the flags of the adapter.
type Options struct {
	// Serving are the flags of the API server library: port, certificates, delegated authentication and authorization.
	Serving *options.CustomMetricsAdapterServerOptions
	// Poller has the flags for Pulsar and polling, Kube those for the API server and the Lease.
	Poller poller.Options
	Kube   kube.Options
	Log    program.LogOptions

	WorkerUpdateInterval time.Duration

	LeaseDuration      time.Duration
	LeaseRenewDeadline time.Duration
	LeaseRetryPeriod   time.Duration

	ServiceName      string
	ServiceNamespace string
	ServicePort      int32
	ExternalMetrics  bool

	// Certificate configures the serving certificate.
	Certificate CertificateOptions

	// Scaler is its address for KEDA.
	Scaler plan.Scaler

	ShutdownDelay time.Duration
	PolicyMetrics metrics.Level
}

// authorizedTTL is how long an access review counts, as for the API server's own webhooks. The library's 10 s is less
// than the 15 s after which an HPA asks again, so that each request of one would cost the API server a review.
const authorizedTTL = 5 * time.Minute

// defaultPort is 10250 because private clusters let the control plane reach nodes and pods on 443 and 10250 only, and
// the first needs root.
const defaultPort = 10250

// NewOptions returns the defaults.
func NewOptions() *Options {
	serving := options.NewCustomMetricsAdapterServerOptions()
	serving.SecureServing.BindPort = defaultPort
	serving.SecureServing.ServerCert.CertDirectory = "" // no files: in memory, as the root is read-only
	serving.Features.EnableProfiling = false
	serving.Authorization.AllowCacheTTL = authorizedTTL
	return &Options{
		Serving: serving,
		Poller:  poller.NewOptions(),
		Kube:    kube.NewOptions(),
		Log:     program.NewLogOptions(),

		WorkerUpdateInterval: target.DefaultWorkerUpdateInterval,

		LeaseDuration:      15 * time.Second,
		LeaseRenewDeadline: 10 * time.Second,
		LeaseRetryPeriod:   2 * time.Second,

		ServiceName: "adapter",
		ServicePort: 443,

		Certificate: newCertificateOptions(),

		ShutdownDelay: 5 * time.Second,
		PolicyMetrics: metrics.Essential,
	}
}

func (o *Options) sections() []flags.Section {
	return []flags.Section{
		{Title: "Pulsar", Add: o.addPulsarFlags},
		{Title: "Measuring", Add: o.Poller.AddMeasuringFlags},
		{Title: "Kubernetes", Add: o.addKubernetesFlags},
		{Title: "KEDA", Add: o.addKEDAFlags},
		{Title: "Process", Add: o.addProcessFlags},
		{Title: "Certificate", Add: o.addCertificateFlags},
		{Title: "Serving the metrics API", Add: o.addServingFlags},
	}
}

func (o *Options) addServingFlags(fs *pflag.FlagSet) {
	o.Serving.SecureServing.AddFlags(fs)
	o.Serving.Authentication.AddFlags(fs)
	o.Serving.Authorization.AddFlags(fs)
}

func (o *Options) addPulsarFlags(fs *pflag.FlagSet) {
	o.Poller.AddPulsarFlags(fs, "adapter")
	fs.DurationVar(&o.WorkerUpdateInterval, "worker-update-interval", o.WorkerUpdateInterval,
		"Minimum time between two changes of the parallelism of a function, sink or source that a function worker runs, "+
			"from 1s to 1h: each restarts all its instances.")
	fs.BoolVar(&o.Poller.WakeByPush, "wake-by-push", o.Poller.WakeByPush,
		"Connect to brokers, which report the first message of topics of Functions at zero, in place of frequent requests: "+
			"--allowed-pulsar-hosts must have the brokers' own addresses, such as pulsar+ssl://*.pulsar.svc:6651.")
}

func (o *Options) addKubernetesFlags(fs *pflag.FlagSet) {
	o.Kube.AddFlags(fs)
	fs.DurationVar(&o.LeaseDuration, "lease-duration", o.LeaseDuration,
		"Time without renewal after which another replica takes over, in whole seconds from 2s to 5m.")
	fs.DurationVar(&o.LeaseRenewDeadline, "lease-renew-deadline", o.LeaseRenewDeadline,
		"Time after which a holder that cannot renew gives up, below --lease-duration.")
	fs.DurationVar(&o.LeaseRetryPeriod, "lease-retry-period", o.LeaseRetryPeriod,
		"Time between two attempts to get or renew the Lease, from 100ms to 20s and at most half of --lease-renew-deadline.")
	fs.StringVar(&o.ServiceName, "service-name", o.ServiceName,
		"Service of the adapter: whether the APIServices of the metrics APIs point to it decides if "+
			"HorizontalPodAutoscalers can be used.")
	fs.StringVar(&o.ServiceNamespace, "service-namespace", o.ServiceNamespace,
		"Namespace of that Service; default: that of the Lease.")
	fs.BoolVar(&o.ExternalMetrics, "external-metrics", o.ExternalMetrics,
		"Serve the same metrics as external.metrics.k8s.io too. A cluster has one server of that API group: KEDA and "+
			"Datadog register themselves.")
}

func (o *Options) addProcessFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay", o.ShutdownDelay,
		"Time for which the adapter still serves requests after SIGTERM, until clients send no more, from 0s to 1m; "+
			"the pod's grace period must be longer.")
	fs.StringVar((*string)(&o.PolicyMetrics), "policy-metrics", string(o.PolicyMetrics),
		"Series of each policy in /metrics: Essential for about 20, Full for about 40, Off for none.")
	o.Log.AddFlags(fs)
}

// ParseOptions parses and validates the arguments. With --help it prints the help text and returns pflag.ErrHelp.
func ParseOptions(args []string, help io.Writer) (*Options, error) {
	o := NewOptions()
	about := flags.Program{
		Name: "adapter",
		Does: "Scales Pulsar Functions: decides replicas and serves the custom metrics API.",
	}
	if err := flags.Parse(about, args, help, o.sections()); err != nil {
		return nil, err
	}
	return o, o.Validate()
}

// ServiceKey names the adapter's Service.
func (o *Options) ServiceKey(leaseNamespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(o.ServiceNamespace, leaseNamespace), Name: o.ServiceName}
}

// Validate returns everything that is wrong, each with flag, value and bound.
func (o *Options) Validate() error {
	problems := slices.Concat(o.Poller.Check(), o.checkLease(), o.checkService(), o.checkCertificate(), o.checkKEDA(),
		o.checkProcess(), o.Serving.Validate())
	return errors.Join(problems...)
}

// maxLeaseRetryPeriod allows for two lost renewals: after 60 s without one the other replicas count the holder as gone
// (informer.DecisionMaker) and stop serving its decisions.
const maxLeaseRetryPeriod = 20 * time.Second

func (o *Options) checkLease() []error {
	p := flags.Problems(o.Kube.Check())
	flags.Between(&p, "lease-duration", o.LeaseDuration, 2*time.Second, 5*time.Minute)
	if o.LeaseDuration%time.Second != 0 {
		p.Add("--lease-duration is %s: it must be whole seconds, as a Lease has no smaller", o.LeaseDuration)
	}
	if o.LeaseRenewDeadline >= o.LeaseDuration {
		p.Add("--lease-renew-deadline is %s: it must be below --lease-duration (%s), else two replicas decide at once",
			o.LeaseRenewDeadline, o.LeaseDuration)
	}
	flags.Between(&p, "lease-retry-period", o.LeaseRetryPeriod, 100*time.Millisecond, maxLeaseRetryPeriod)
	if o.LeaseRetryPeriod > o.LeaseRenewDeadline/2 {
		p.Add("--lease-retry-period is %s: it must be at most half of --lease-renew-deadline (%s)", o.LeaseRetryPeriod,
			o.LeaseRenewDeadline)
	}
	return p
}

func (o *Options) checkService() []error {
	var p flags.Problems
	p.Name("service-name", o.ServiceName, validation.IsDNS1035Label)
	if o.ServiceNamespace != "" {
		p.Name("service-namespace", o.ServiceNamespace, validation.IsDNS1123Label)
	}
	return p
}

func (o *Options) checkProcess() []error {
	var p flags.Problems
	flags.Between(&p, "worker-update-interval", o.WorkerUpdateInterval, time.Second, time.Hour)
	flags.Between(&p, "shutdown-delay", o.ShutdownDelay, 0, time.Minute)
	p.OneOf("policy-metrics", string(o.PolicyMetrics), string(metrics.Essential), string(metrics.Full),
		string(metrics.Off))
	p = append(p, o.Log.Check()...)
	if o.Serving.SecureServing.BindPort == 0 { // the library takes 0 for "do not serve"
		p.Add("--secure-port is 0: it must be from 1 to 65535, since metrics and probes are served there")
	}
	return p
}

// addKEDAFlags adds the address of the scaler, which is another program.
func (o *Options) addKEDAFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Scaler.Address, plan.FlagScalerAddress, o.Scaler.Address,
		"Where KEDA reaches the scaler: host:port of its headless Service, such as scaler.pulsar-autoscaler.svc:9090; "+
			"default: none, and policies do not use KEDA.")
	fs.BoolVar(&o.Scaler.TLS, "keda-scaler-tls", o.Scaler.TLS, "The scaler speaks TLS.")
	fs.StringVar(&o.Scaler.Authentication, "keda-scaler-authentication", o.Scaler.Authentication,
		"ClusterTriggerAuthentication with the CA that signs the scaler's certificate, or with a client certificate for "+
			"it; default: none.")
}

func (o *Options) checkKEDA() []error {
	var p flags.Problems
	if address := o.Scaler.Address; address != "" {
		host, port, err := net.SplitHostPort(address)
		number, notANumber := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || notANumber != nil || number == 0 {
			p.Add("--%s is %q: it must be host:port with a port from 1 to 65535, such as scaler.pulsar-autoscaler.svc:9090",
				plan.FlagScalerAddress, address)
		}
	}
	if name := o.Scaler.Authentication; name != "" {
		p.Name("keda-scaler-authentication", name, validation.IsDNS1123Subdomain)
	}
	if o.Scaler.Address == "" && (o.Scaler.TLS || o.Scaler.Authentication != "") {
		p.Add("--keda-scaler-tls is %t and --keda-scaler-authentication is %q: they are for --%s, which must be set then",
			o.Scaler.TLS, o.Scaler.Authentication, plan.FlagScalerAddress)
	}
	return p
}
