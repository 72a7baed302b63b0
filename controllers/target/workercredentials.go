// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// WorkerCredentials says which credentials the controller presents to function workers to change what they run.
type WorkerCredentials string

// The values of WorkerCredentials.
const (
	// PolicyWorkerCredentials are those of the policy. The adapter's own are not presented: they may change functions of
	// many tenants, and a policy of any namespace may name any of these.
	PolicyWorkerCredentials WorkerCredentials = "Policy"
	// OwnWorkerCredentials are the adapter's own where the policy has none.
	OwnWorkerCredentials WorkerCredentials = "Own"
)

// workerRefusal returns why the adapter's own credentials are not presented to a function worker; empty when they are.
// When the adapter has none of its own either, requests are anonymous, and Pulsar decides what they may do.
func workerRefusal(config Config) (func(ref v1alpha1.PulsarFunctionRef) string, error) {
	mode := cmp.Or(config.WorkerCredentials, PolicyWorkerCredentials)
	if mode != PolicyWorkerCredentials && mode != OwnWorkerCredentials {
		return nil, fmt.Errorf("WorkerCredentials is %q, must be %s or %s", mode, PolicyWorkerCredentials,
			OwnWorkerCredentials)
	}
	return func(ref v1alpha1.PulsarFunctionRef) string {
		if !config.OwnCredentials.Authenticates || mode == OwnWorkerCredentials {
			return ""
		}
		const refused, allow = "the adapter does not use its own credentials to change what function workers run " +
			"(--worker-credentials=Policy)",
			"run the adapter with --worker-credentials=Own (in adapter.extraArgs of the chart), which lets a policy of any " +
				"namespace use them"
		if config.FunctionCredentials == IgnoreFunctionCredentials {
			return refused + ", and with --function-credentials=Ignore there are no others: " + allow
		}
		return fmt.Sprintf("%s: set spec.pulsar.authSecret to a Secret that the adapter may read, with credentials that may "+
			"change %s, or %s", refused, ref.FullName(), allow)
	}, nil
}
