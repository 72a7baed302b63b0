// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// The series of Pulsar, kube-state-metrics and the adapter.
const (
	published    = "pulsar_in_messages_total"
	publishRate  = "pulsar_rate_in"
	dispatched   = "pulsar_out_messages_total"
	backlogGauge = "pulsar_subscription_back_log"

	policyPrefix = "pulsar_autoscaler_policy_"
)

// Names of the series, for help texts.
func Names() []string {
	return []string{
		published, publishRate, dispatched, backlogGauge,
		"kube_statefulset_replicas", "kube_statefulset_status_replicas_ready",
		"kube_deployment_spec_replicas", "kube_deployment_status_replicas_ready",
		policyPrefix + "publish_rate", policyPrefix + "process_rate", policyPrefix + "ready_messages",
		policyPrefix + "spec_replicas", policyPrefix + "running_replicas",
		policyPrefix + "capacity_messages_per_second", policyPrefix + "capacity_uncertainty_ratio",
	}
}

// Function has its labels. Empty ones are not queried.
type Function struct {
	// Topics that it consumes, such as persistent://public/default/in, or TopicsPattern; Subscription is its name.
	Topics        []string
	TopicsPattern string
	Subscription  string
	// Namespace of the policy and the workload in Kubernetes, and Policy: the name of the policy.
	Namespace, Policy string
	// Kind is StatefulSet or Deployment, and Workload its name.
	Kind, Workload string
}

// TargetOf is the target of a policy. A Function of Function Mesh runs in a StatefulSet with its name and kind.
func TargetOf(policy v1alpha1.AutoscalingPolicy) Function {
	f := Function{Namespace: policy.Namespace, Policy: policy.Name}
	if s := policy.Spec.Subscription; s != nil {
		f.TopicsPattern, f.Subscription = s.TopicsPattern, s.Name
		for _, topic := range s.Topics {
			f.Topics = append(f.Topics, string(topic))
		}
	}
	target := policy.Spec.ScaleTargetRef
	name, kind := target.Name, target.Kind
	if kind == "FunctionMesh" {
		name, kind = name+"-"+target.Component.Name, string(target.Component.Kind)
	}
	switch kind {
	case "StatefulSet", "Deployment":
		f.Kind, f.Workload = kind, name
	case "Function", "Sink", "Source":
		f.Kind, f.Workload = "StatefulSet", name+"-"+strings.ToLower(kind)
	}
	return f
}

// topicMatcher matches the topics and their partitions.
func (f Function) topicMatcher() string {
	const persistent, partition = "persistent://", "(-partition-[0-9]+)?"
	var patterns []string
	for _, topic := range f.Topics {
		if !strings.Contains(topic, "://") {
			topic = persistent + topic
		}
		patterns = append(patterns, regexp.QuoteMeta(topic)+partition)
	}
	if f.TopicsPattern != "" {
		pattern := strings.TrimPrefix(f.TopicsPattern, persistent)
		patterns = append(patterns, persistent+"(?:"+pattern+")"+partition)
	}
	return "topic=~" + strconv.Quote(strings.Join(patterns, "|"))
}

func (f Function) hasTopics() bool { return len(f.Topics) > 0 || f.TopicsPattern != "" }

// policySelector selects a series of the policies of a namespace, or of all if that is empty.
func policySelector(namespace, name, matchers string) string {
	if namespace != "" {
		matchers += "namespace=" + strconv.Quote(namespace)
	}
	return policyPrefix + name + "{" + matchers + "}"
}

// policySeries is one of the adapter's series of the policy; none if its name is unknown.
func (f Function) policySeries(name string) []string {
	if f.Policy == "" || f.Namespace == "" {
		return nil
	}
	return []string{fmt.Sprintf("max(%s{namespace=%s,policy=%s})", policyPrefix+name, strconv.Quote(f.Namespace),
		strconv.Quote(f.Policy))}
}

func (f Function) topicRate(name string, window time.Duration, labels ...string) string {
	return fmt.Sprintf("sum(rate(%s{%s}[%s]))", name, strings.Join(append([]string{f.topicMatcher()}, labels...), ","),
		model.Duration(window))
}

func (f Function) subscriptionLabel() string { return "subscription=" + strconv.Quote(f.Subscription) }

// arrivals in messages per second.
func (f Function) arrivals(window time.Duration) []string {
	var all []string
	if f.hasTopics() {
		all = append(all, f.topicRate(published, window), fmt.Sprintf("sum(%s{%s})", publishRate, f.topicMatcher()))
	}
	return append(all, f.policySeries("publish_rate")...)
}

// processed messages per second: the dispatched ones, which equal the processed ones over a period in which replicas
// always have work.
func (f Function) processed(window time.Duration) []string {
	var all []string
	if f.hasTopics() && f.Subscription != "" {
		all = append(all, f.topicRate(dispatched, window, f.subscriptionLabel()))
	}
	return append(all, f.policySeries("process_rate")...)
}

// backlog in messages, or in entries for Pulsar's own series.
func (f Function) backlog() []string {
	var all []string
	if f.hasTopics() && f.Subscription != "" {
		all = append(all, fmt.Sprintf("sum(%s{%s,%s})", backlogGauge, f.topicMatcher(), f.subscriptionLabel()))
	}
	return append(all, f.policySeries("ready_messages")...)
}

// workload is a series of kube-state-metrics.
func (f Function) workload(statefulSet, deployment string) []string {
	if f.Workload == "" || f.Namespace == "" {
		return nil
	}
	name, label := statefulSet, "statefulset"
	if f.Kind == "Deployment" {
		name, label = deployment, "deployment"
	}
	return []string{fmt.Sprintf("max(%s{namespace=%s,%s=%s})", name, strconv.Quote(f.Namespace), label,
		strconv.Quote(f.Workload))}
}

// replicas that were set, and those that were ready.
func (f Function) replicas() []string {
	return append(f.workload("kube_statefulset_replicas", "kube_deployment_spec_replicas"),
		f.policySeries("spec_replicas")...)
}

func (f Function) ready() []string {
	return append(f.workload("kube_statefulset_status_replicas_ready", "kube_deployment_status_replicas_ready"),
		f.policySeries("running_replicas")...)
}
