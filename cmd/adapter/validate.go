// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
)

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
	p.Between("lease-duration", o.LeaseDuration, 2*time.Second, 5*time.Minute)
	if o.LeaseDuration%time.Second != 0 {
		p.Add("--lease-duration is %s: it must be whole seconds, as a Lease has no smaller", o.LeaseDuration)
	}
	if o.LeaseRenewDeadline >= o.LeaseDuration {
		p.Add("--lease-renew-deadline is %s: it must be below --lease-duration (%s), else two replicas decide at once",
			o.LeaseRenewDeadline, o.LeaseDuration)
	}
	p.Between("lease-retry-period", o.LeaseRetryPeriod, 100*time.Millisecond, maxLeaseRetryPeriod)
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
	p.Between("worker-update-interval", o.WorkerUpdateInterval, time.Second, time.Hour)
	p.Between("shutdown-delay", o.ShutdownDelay, 0, time.Minute)
	p.OneOf("policy-metrics", string(o.PolicyMetrics), string(metrics.Essential), string(metrics.Full),
		string(metrics.Off))
	p = append(p, o.Log.Check()...)
	if o.Serving.SecureServing.BindPort == 0 { // the library takes 0 for "do not serve"
		p.Add("--secure-port is 0: it must be from 1 to 65535, since metrics and probes are served there")
	}
	return p
}
