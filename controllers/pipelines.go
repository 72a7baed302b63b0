// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"math"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// pipelines know what the Functions of policies publish, for the policies of the same namespace that consume it.
type pipelines struct {
	// mu guards everything below.
	mu sync.Mutex
	// outputs of policies, and their outlooks by output: nil while one is unknown.
	outputs  map[types.NamespacedName]output
	outlooks map[output]map[types.NamespacedName]*policy.Outlook
}

// output is a topic that policies of a namespace publish to.
type output struct {
	namespace string
	topic     backlog.Topic
}

func newPipelines() *pipelines {
	return &pipelines{
		outputs: map[types.NamespacedName]output{}, outlooks: map[output]map[types.NamespacedName]*policy.Outlook{},
	}
}

// publishes records what a policy's Function publishes by its decision, if that is carried out, as it is while the
// policy is Ready. It returns the topic if its consumers have to decide again: more is expected than before.
func (p *pipelines) publishes(key types.NamespacedName, observed plan.Observed, decision *policy.Decision) (
	topic backlog.Topic, more bool,
) {
	if observed.Subscription() == nil || observed.Target.Output == "" {
		p.forget(key)
		return backlog.Topic{}, false
	}
	topic = backlog.Topic{Cluster: observed.Target.Subscription.Cluster, Name: observed.Target.Output}
	var after *policy.Outlook
	if decision != nil && observed.Violation == nil && observed.Applies() &&
		meta.IsStatusConditionTrue(observed.Policy.Status.Conditions, v1alpha1.ConditionReady) {
		after = decision.Outlook
	}
	before := p.replace(key, output{key.Namespace, topic}, after)
	return topic, after != nil && after.Rises() && (before == nil || !before.Rises() ||
		math.Abs(after.Expected-before.Expected) > policy.News*before.Expected)
}

// replace records an outlook and returns the one before.
func (p *pipelines) replace(key types.NamespacedName, to output, after *policy.Outlook) (before *policy.Outlook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.outputs[key] != to {
		p.drop(key)
		p.outputs[key] = to
	}
	if p.outlooks[to] == nil {
		p.outlooks[to] = map[types.NamespacedName]*policy.Outlook{}
	}
	before, p.outlooks[to][key] = p.outlooks[to][key], after
	return before
}

// upstream is what the Functions that publish to the topics of a policy process; nil if that is not known of each.
func (p *pipelines) upstream(key types.NamespacedName, consumed backlog.Subscription) *policy.Outlook {
	if len(consumed.Patterns) > 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var sum *policy.Outlook
	for _, name := range consumed.Topics {
		outlooks := p.outlooks[output{key.Namespace, backlog.Topic{Cluster: consumed.Cluster, Name: name}}]
		if len(outlooks) == 0 {
			return nil
		}
		for publisher, one := range outlooks {
			switch {
			case one == nil || publisher == key:
				return nil
			case sum == nil:
				sum = one
			default:
				sum = new(sum.Plus(*one))
			}
		}
	}
	return sum
}

// unknown records that it is not known what a policy's Function publishes.
func (p *pipelines) unknown(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to, publishes := p.outputs[key]; publishes {
		p.outlooks[to][key] = nil
	}
}

func (p *pipelines) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(key)
}

// drop is forget. mu is held.
func (p *pipelines) drop(key types.NamespacedName) {
	to := p.outputs[key]
	delete(p.outputs, key)
	if delete(p.outlooks[to], key); len(p.outlooks[to]) == 0 {
		delete(p.outlooks, to)
	}
}
