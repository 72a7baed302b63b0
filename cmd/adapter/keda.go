// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

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
