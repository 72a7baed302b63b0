// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // Pulsar's choice for names, without security
	"encoding/hex"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Component is a function, sink or source as the function worker of a cluster knows it.
type Component struct {
	Cluster backlog.Cluster
	// WorkerURL is the URL of a worker that runs apart from the brokers, as ParseAdminURL returns it; empty if the brokers
	// (or a proxy) answer for it.
	WorkerURL string
	Kind      Kind
	// Tenant, Namespace and Name, such as public, default and resize.
	Tenant, Namespace, Name string
}

// Address is the URL of its worker: the brokers answer for one that has none.
func (c Component) Address() string { return cmp.Or(c.WorkerURL, c.Cluster.AdminURL) }

// FullName is tenant/namespace/name.
func (c Component) FullName() string { return fullName(c.Tenant, c.Namespace, c.Name) }

// String is the kind and the full name, such as function public/default/resize.
func (c Component) String() string { return string(c.Kind) + " " + c.FullName() }

// Description is a component's configuration, as the function worker reports it.
type Description struct {
	// Subscription is what the component consumes; its Workload is the component's.
	Subscription backlog.Subscription
	// Type is the subscription type that its instances request. The broker may report another type if other consumers use
	// the subscription.
	Type backlog.SubscriptionType
	// Parallelism is the number of instances that the worker is configured to run. The StatefulSet may have been scaled
	// since.
	Parallelism int
	// NeverAcknowledges is true for a window function that leaves acknowledging to user code, which cannot do it.
	NeverAcknowledges bool
}

// Status is the state of the instances of a component.
type Status struct {
	// Instances is the number that the worker is configured to run, and Running the number that run, as far as the worker
	// can reach them. Failed instances do not run and report an error, or have no worker yet.
	Instances, Running, Failed int
}

// Stopped reports whether it was stopped: no instance runs, and none reports an error. It is also true for a moment
// during a restart.
func (s Status) Stopped() bool { return s.Instances > 0 && s.Running == 0 && s.Failed == 0 }

// StatefulSetName is the name of the StatefulSet that Pulsar's function worker creates on Kubernetes for
// tenant/namespace/name, without a jobName of its own.
//
// Source: org.apache.pulsar.functions.runtime.kubernetes.KubernetesRuntime.createJobName.
func StatefulSetName(tenant, namespace, name string) string {
	base := tenant + "-" + namespace + "-" + name
	raw := "pf-" + base
	if valid := validName(raw); valid != raw {
		return valid + "-" + shortHash(base)
	}
	return raw
}

// RunsAs reports whether the worker gives this name to the StatefulSet of the function. With a jobName, which only some
// workers support, the name is that of the function's own options or the part before the hash.
//
// Source: Pulsar's KubernetesRuntime.createJobName and BasicKubernetesManifestCustomizer.
func (f Function) RunsAs(statefulSet string) bool {
	if statefulSet == StatefulSetName(f.Tenant, f.Namespace, f.Name) ||
		f.JobName != "" && statefulSet == f.jobStatefulSet(f.JobName) {
		return true
	}
	at := strings.LastIndexByte(statefulSet, '-')
	return at > 0 && statefulSet == f.jobStatefulSet(statefulSet[:at])
}

func (f Function) jobStatefulSet(jobName string) string {
	return validName(jobName) + "-" + shortHash(strings.Join([]string{jobName, f.Tenant, f.Namespace, f.Name}, "-"))
}

// validName replaces characters that are invalid in the name of a pod.
func validName(name string) string {
	return strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// shortHash distinguishes names that validName maps to the same name.
func shortHash(text string) string {
	hash := sha1.Sum([]byte(text))
	return hex.EncodeToString(hash[:])[:8]
}
