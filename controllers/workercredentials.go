// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// WorkerCredentials says whose credentials function workers are shown, which change what they run.
type WorkerCredentials string

// The two ways.
const (
	// PolicyWorkerCredentials are those of the policy. The adapter's own are not shown: they may change functions of many
	// tenants, and a policy of any namespace may name any of these.
	PolicyWorkerCredentials WorkerCredentials = "Policy"
	// OwnWorkerCredentials are the adapter's own where the policy has none.
	OwnWorkerCredentials WorkerCredentials = "Own"
)

func (c *TargetsConfig) checkWorkerCredentials() error {
	c.WorkerCredentials = cmp.Or(c.WorkerCredentials, PolicyWorkerCredentials)
	if c.WorkerCredentials != PolicyWorkerCredentials && c.WorkerCredentials != OwnWorkerCredentials {
		return fmt.Errorf("targets: WorkerCredentials is %q, must be %s or %s", c.WorkerCredentials, PolicyWorkerCredentials,
			OwnWorkerCredentials)
	}
	return nil
}

// refusesWorker says why the access, which is empty for the adapter's own credentials, is not for a function worker;
// empty when it is. Where the adapter has none of its own either, nobody says who he is, and Pulsar decides what that
// is worth.
func (t *Targets) refusesWorker(access string, ref v1alpha1.PulsarFunctionRef) string {
	if access != "" || !t.config.OwnCredentials.Authenticates || t.config.WorkerCredentials == OwnWorkerCredentials {
		return ""
	}
	const refused,
		allow = "the adapter's own credentials are not for changing what function workers run (--worker-credentials=Policy)",
		"run the adapter with --worker-credentials=Own, which lets a policy of any namespace use them"
	if t.config.FunctionCredentials == IgnoreFunctionCredentials {
		return refused + ", and with --function-credentials=Ignore there are no others: " + allow
	}
	return fmt.Sprintf("%s: set spec.pulsar.authSecret to a Secret that the adapter may read, with credentials that may "+
		"change %s, or %s", refused,
		ref.FullName(), allow)
}

// mayScale says that a policy of another namespace counts when it comes to who goes first: it was not found that it
// cannot scale what it names, for want of credentials as a rule. Else everybody could keep functions of others from
// being scaled.
func mayScale(other *v1alpha1.AutoscalingPolicy) bool {
	return !meta.IsStatusConditionFalse(other.Status.Conditions, v1alpha1.ConditionTargetFound)
}
