// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// hpaMinReplicas is the default of a HorizontalPodAutoscaler.
const hpaMinReplicas = 1

// partition ends the name of a partition of a topic.
var partition = regexp.MustCompile(`-partition-[0-9]+$`)

// autoscaler translates a HorizontalPodAutoscaler that a user wrote, or that Function Mesh forgot.
func (t *translator) autoscaler(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	title := plan.KindAutoscaler + " " + hpa.Namespace + "/" + hpa.Name
	switch kind := controllerKind(hpa); {
	case kind == v1alpha1.KindAutoscalingPolicy || kind == plan.KindScaledObject:
		return
	case v1alpha1.IsWorkload(kind) && t.ownMaxReplicas(hpa.Namespace, hpa.Spec.ScaleTargetRef) != nil:
		return // Function Mesh makes it from maxReplicas
	}
	named := v1alpha1.ScaleTargetRef{
		APIVersion: hpa.Spec.ScaleTargetRef.APIVersion, Kind: hpa.Spec.ScaleTargetRef.Kind,
		Name: hpa.Spec.ScaleTargetRef.Name,
	}
	target, impossible := t.resolve(hpa.Namespace, named)
	if impossible != "" {
		t.problem(title, "%s", impossible)
		return
	}
	subscription := subscriptionOf(hpa.Spec.Metrics)
	switch {
	case target.describes || subscription != nil || t.policies[keyOf(hpa.Namespace, target.ref)] != nil:
	case slices.ContainsFunc(hpa.Spec.Metrics, isOfPulsar):
		t.problem(title, "its metrics name no topic and no subscription: write a policy for %s %s with "+
			"spec.subscription (examples/deployment.yaml)", named.Kind, named.Name)
		return
	default:
		t.foreign = append(t.foreign, fmt.Sprintf("%s/%s (%s %s)", hpa.Namespace, hpa.Name, named.Kind, named.Name))
		return
	}
	t.scaledBy(hpa, title, target, subscription)
}

// scaledBy adds an autoscaler to the draft of its target.
func (t *translator) scaledBy(hpa *autoscalingv2.HorizontalPodAutoscaler, title string, target scaled,
	subscription *v1alpha1.Subscription,
) {
	origin := Origin{Kind: plan.KindAutoscaler, Namespace: hpa.Namespace, Name: hpa.Name}
	d := t.draft(hpa.Namespace, target.ref)
	d.origins = append(d.origins, origin)
	if d.existing != nil {
		return
	}
	d.bounds(origin, boundOf(hpa.Spec.MinReplicas, fieldMin, hpaMinReplicas), bound{hpa.Spec.MaxReplicas, fieldMax})
	if named := hpa.Spec.ScaleTargetRef; named.Kind == plan.KindStatefulSet && target.ref.Kind != plan.KindStatefulSet {
		d.comment(fieldTarget, "%s scales StatefulSet %s, which belongs to it.", origin, named.Name)
	}
	if owner := metav1.GetControllerOfNoCopy(hpa); owner != nil && !v1alpha1.IsWorkload(owner.Kind) {
		d.keeps = true
		t.problem(title, "%s %s created it and would recreate it: configure that to leave the target alone, "+
			"then set mode Auto", owner.Kind, owner.Name)
	}
	if !target.describes && d.subscription == nil {
		d.subscription = subscription
		d.comment(fieldSubscription, "By the selector of the metric. Set the type that the consumers use.")
	}
	t.metrics(d, title, hpa.Spec.Metrics)
	t.behavior(d, origin, title, hpa.Spec.Behavior)
}

// ownMaxReplicas is maxReplicas of a Function, Sink or Source; nil for none.
func (o objects) ownMaxReplicas(namespace string, ref autoscalingv2.CrossVersionObjectReference) *int32 {
	object := o.byKey[objectKey{namespace, ref.Kind, ref.Name}]
	if object == nil {
		return nil
	}
	fields, _ := object.Object["spec"].(map[string]any)
	spec, err := decodeComponent(fields)
	if err != nil {
		return nil
	}
	return spec.MaxReplicas
}

// metrics explains what becomes of each metric.
func (t *translator) metrics(d *draft, title string, metrics []autoscalingv2.MetricSpec) {
	if len(metrics) == 0 {
		d.note("cpu at 80 %%, the default: %s", insteadOfCPU)
	}
	for _, m := range metrics {
		resource, text := metricOf(m).resource, describe(m)
		switch {
		case resource == corev1.ResourceCPU:
			d.note("%s: %s", text, insteadOfCPU)
		case resource == corev1.ResourceMemory:
			d.note("%s: memory does not follow the load, and a policy does not scale by it.", text)
		case isOfPulsar(m):
			d.note("%s: the policy learns what one replica processes. To keep a threshold, set strategies "+
				"(docs/algorithm.md).", text)
		default:
			t.problem(title, "%s has no counterpart in a policy, which scales by what Pulsar reports: switch to mode Auto "+
				"only if the backlog covers it", text)
		}
	}
}

const insteadOfCPU = "CPU says little about a replica that waits for a database. The policy scales by backlog, rates " +
	"and what one replica processes."

// metric is what the types of metrics have in common: a resource, or a name with a selector, and a target.
type metric struct {
	resource corev1.ResourceName
	id       *autoscalingv2.MetricIdentifier
	target   autoscalingv2.MetricTarget
}

func metricOf(m autoscalingv2.MetricSpec) metric {
	switch {
	case m.Resource != nil:
		return metric{resource: m.Resource.Name, target: m.Resource.Target}
	case m.ContainerResource != nil:
		return metric{resource: m.ContainerResource.Name, target: m.ContainerResource.Target}
	case m.External != nil:
		return metric{id: &m.External.Metric, target: m.External.Target}
	case m.Object != nil:
		return metric{id: &m.Object.Metric, target: m.Object.Target}
	case m.Pods != nil:
		return metric{id: &m.Pods.Metric, target: m.Pods.Target}
	default:
		return metric{}
	}
}

func isOfPulsar(m autoscalingv2.MetricSpec) bool {
	id := metricOf(m).id
	return id != nil && strings.Contains(id.Name, "pulsar")
}

// describe is a metric with its target.
func describe(m autoscalingv2.MetricSpec) string {
	of := metricOf(m)
	name := string(of.resource)
	if of.id != nil {
		name = fmt.Sprintf("%s metric %s", m.Type, of.id.Name)
	}
	switch target := of.target; {
	case target.AverageUtilization != nil:
		return fmt.Sprintf("%s at %d %%", name, *target.AverageUtilization)
	case target.AverageValue != nil:
		return fmt.Sprintf("%s at %s for each replica", name, target.AverageValue)
	case target.Value != nil:
		return fmt.Sprintf("%s at %s", name, target.Value)
	default:
		return name
	}
}

// subscriptionOf is the subscription that the selectors of metrics name, with the labels that Pulsar gives its series;
// nil for none.
func subscriptionOf(metrics []autoscalingv2.MetricSpec) *v1alpha1.Subscription {
	var s *v1alpha1.Subscription
	for _, m := range metrics {
		id := metricOf(m).id
		if id == nil || id.Selector == nil {
			continue
		}
		name, topic := id.Selector.MatchLabels["subscription"], id.Selector.MatchLabels["topic"]
		topic = partition.ReplaceAllString(strings.TrimPrefix(topic, "persistent://"), "")
		if name == "" || !topicName.MatchString(topic) || s != nil && s.Name != name {
			continue
		}
		s = cmp.Or(s, &v1alpha1.Subscription{Name: name, Type: v1alpha1.SubscriptionShared})
		if !slices.Contains(s.Topics, v1alpha1.TopicName(topic)) {
			s.Topics = append(s.Topics, v1alpha1.TopicName(topic))
		}
	}
	return s
}
