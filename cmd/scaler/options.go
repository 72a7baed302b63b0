// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/kube"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/poller"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/program"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/keda"
)

// Options are the flags of the scaler.
type Options struct {
	// Poller has the flags for Pulsar and polling, Kube those for the API server and the Lease of the adapter.
	Poller poller.Options
	Kube   kube.Options
	Log    program.LogOptions
	TLS    keda.TLSFiles
	// Certificate configures TLS between KEDA and the scaler.
	Certificate CertificateOptions

	// ConnectionsFile names Pulsar clusters for triggers.
	ConnectionsFile    string
	GRPCBindAddress    string
	MetricsBindAddress string
	HoldFor            time.Duration
	MaxConnectionAge   time.Duration
	// MaxStreamsPerNamespace bounds the open streams for ScaledObjects of one namespace.
	MaxStreamsPerNamespace int
	ShutdownDelay          time.Duration
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Poller: poller.NewOptions(),
		Kube:   kube.NewOptions(),
		Log:    program.NewLogOptions(),

		Certificate: newCertificateOptions(),

		GRPCBindAddress:    ":9090",
		MetricsBindAddress: ":8080",
		HoldFor:            time.Hour,
		MaxConnectionAge:   keda.DefaultMaxConnectionAge,

		MaxStreamsPerNamespace: keda.DefaultMaxStreamsPerNamespace,
		ShutdownDelay:          5 * time.Second,
	}
}

func (o *Options) sections() []flags.Section {
	return []flags.Section{
		{Title: "Serving KEDA", Add: o.addServingFlags},
		{Title: "Pulsar", Add: o.addPulsarFlags},
		{Title: "Measuring", Add: o.Poller.AddMeasuringFlags},
		{Title: "Kubernetes", Add: o.Kube.AddFlags},
		{Title: "Process", Add: o.addProcessFlags},
	}
}

func (o *Options) addServingFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.GRPCBindAddress, "grpc-bind-address", o.GRPCBindAddress,
		"Address of the gRPC server for KEDA: host:port, or :port for all addresses.")
	fs.StringVar(&o.TLS.Certificate, "tls-cert-file", o.TLS.Certificate,
		"File with the PEM certificate chain of the scaler; read again when it changes. Without one, connections are not "+
			"encrypted.")
	fs.StringVar(&o.TLS.Key, "tls-private-key-file", o.TLS.Key,
		"File with the PEM key of --tls-cert-file.")
	fs.StringVar(&o.TLS.ClientCA, "client-ca-file", o.TLS.ClientCA,
		"File with the PEM certificates that sign KEDA's client certificate. Without one, the "+
			"scaler serves every client that reaches the port.")
	o.addCertificateFlags(fs)
	fs.DurationVar(&o.HoldFor, "hold-for", o.HoldFor,
		"How long the last known value is held while a trigger is unknown, from 1m to 24h; then the scaler returns an "+
			"error, for which a ScaledObject has fallback.")
	fs.DurationVar(&o.MaxConnectionAge, "max-connection-age", o.MaxConnectionAge,
		"Age at which connections are closed, so that KEDA looks up the replicas of the scaler again, from 1s to 24h.")
	fs.IntVar(&o.MaxStreamsPerNamespace, "max-streams-per-namespace", o.MaxStreamsPerNamespace,
		"Open streams of external-push triggers for the ScaledObjects of one namespace, from 1 to 40000: one for each "+
			"trigger, two with a threshold of a policy. KEDA only polls a trigger with a refused stream.")
}

func (o *Options) addPulsarFlags(fs *pflag.FlagSet) {
	o.Poller.AddPulsarFlags(fs, "scaler")
	fs.StringVar(&o.ConnectionsFile, "connections-file", o.ConnectionsFile,
		"YAML file of the Pulsar clusters that triggers may name (connection), with their credentials and the namespaces "+
			"that may use them; read again when it changes.")
}

func (o *Options) addProcessFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"Address of /metrics, /healthz and /readyz: host:port, or :port for all addresses.")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay", o.ShutdownDelay,
		"Time for which the scaler still serves KEDA after SIGTERM while /readyz fails, from 0s to 1m; the pod's grace "+
			"period must be 10s longer.")
	o.Log.AddFlags(fs)
}

// ParseOptions parses and validates the arguments. With --help it prints the help text and returns pflag.ErrHelp.
func ParseOptions(args []string, help io.Writer) (*Options, error) {
	o := NewOptions()
	about := flags.Program{
		Name: "scaler",
		Does: "External scaler for KEDA: serves how many replicas Pulsar Functions need.",
	}
	if err := flags.Parse(about, args, help, o.sections()); err != nil {
		return nil, err
	}
	return o, o.Validate()
}

// Validate returns everything that is wrong, each with flag, value and bound.
func (o *Options) Validate() error {
	return errors.Join(slices.Concat(o.checkServing(), o.checkCertificate(), o.Poller.Check(), o.Kube.Check(),
		o.checkProcess())...)
}

func (o *Options) checkServing() []error {
	var p flags.Problems
	checkAddress(&p, "grpc-bind-address", o.GRPCBindAddress)
	if (o.TLS.Certificate == "") != (o.TLS.Key == "") {
		p.Add("--tls-cert-file is %q and --tls-private-key-file is %q: both or none must be set", o.TLS.Certificate,
			o.TLS.Key)
	}
	if o.TLS.ClientCA != "" && o.TLS.Certificate == "" {
		p.Add("--client-ca-file is %q and --tls-cert-file is %q: clients show certificates over TLS alone", o.TLS.ClientCA,
			o.TLS.Certificate)
	}
	flags.Between(&p, "hold-for", o.HoldFor, time.Minute, 24*time.Hour)
	flags.Between(&p, "max-connection-age", o.MaxConnectionAge, time.Second, 24*time.Hour)
	flags.Between(&p, "max-streams-per-namespace", o.MaxStreamsPerNamespace, 1, keda.MaxStreams)
	return p
}

func (o *Options) checkProcess() []error {
	var p flags.Problems
	checkAddress(&p, "metrics-bind-address", o.MetricsBindAddress)
	flags.Between(&p, "shutdown-delay", o.ShutdownDelay, 0, time.Minute)
	return append(p, o.Log.Check()...)
}

// checkAddress accepts port 0 for any free one.
func checkAddress(p *flags.Problems, flag, address string) {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		p.Add("--%s is %q: it must be host:port or :port, with a port from 0 to 65535", flag, address)
	}
}
