// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestSharersOfAFunction(t *testing.T) {
	tests := map[string]struct {
		kind   string
		change func(*unstructured.Unstructured)
		want   []string
	}{
		"another Function of the same name in Pulsar": {want: []string{"Function media/twin"}},
		"one in another namespace": {
			change: func(u *unstructured.Unstructured) {
				u.SetNamespace("shop")
				fixture.Spec(u)["pulsar"] = map[string]any{}
			},
		},
		"a Sink": {kind: cluster.KindSink, want: []string{"Sink media/twin"}},
		"a pattern that matches the topic": {
			change: func(u *unstructured.Unstructured) { fixture.Spec(u)["input"] = map[string]any{"topicPattern": "i."} },
			want:   []string{"Function media/twin"},
		},
		"a pattern that does not match": {
			change: func(u *unstructured.Unstructured) { fixture.Spec(u)["input"] = map[string]any{"topicPattern": "i"} },
		},
		"other topics": {
			change: func(u *unstructured.Unstructured) { fixture.Spec(u)["input"] = map[string]any{"topics": []any{"out"}} },
		},
		"another subscription": {change: func(u *unstructured.Unstructured) { delete(fixture.Spec(u), "name") }},
		"unknown inputs": {
			change: func(u *unstructured.Unstructured) { delete(fixture.Spec(u), "input") },
		},
		"another cluster": {
			change: func(u *unstructured.Unstructured) {
				fixture.Spec(u)["pulsar"] = map[string]any{"pulsarConfig": "missing"}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			twin := fixture.Workload(cmp.Or(test.kind, cluster.KindFunction))
			twin.SetName("twin")
			fixture.Spec(twin)["name"] = "resize"
			if test.change != nil {
				test.change(twin)
			}
			targets := newTestTargets(t, []client.Object{fixture.Function(), twin, fixture.ConfigMap()})
			found, err := targets.Finder.Find(t.Context(), fixture.Namespace, fixture.Policy().Spec)
			require.NoError(t, err)
			sharers, err := targets.Sharers.Of(t.Context(), fixture.Namespace, found.Target)
			require.NoError(t, err)
			require.Equal(t, test.want, sharers)
		})
	}
}

// An index has no order, and most objects with one subscription name have no topic in common.
func TestSharerAmongManyOfOneSubscriptionName(t *testing.T) {
	objects := []client.Object{fixture.Function(), fixture.ConfigMap()}
	for i := range 50 {
		other := fixture.Function()
		other.SetName(fmt.Sprintf("other-%02d", i))
		fixture.Spec(other)["subscriptionName"] = "public/default/resize"
		fixture.Spec(other)["input"] = map[string]any{"topics": []any{fmt.Sprintf("other-%d", i)}}
		objects = append(objects, other)
	}
	for i := range 20 {
		twin := fixture.Function()
		twin.SetName(fmt.Sprintf("twin-%02d", i))
		fixture.Spec(twin)["name"] = "resize"
		objects = append(objects, twin)
	}
	targets := newTestTargets(t, objects, func(c *Config) { c.Workloads = shuffled{c.Workloads} })
	found, err := targets.Finder.Find(t.Context(), fixture.Namespace, fixture.Policy().Spec)
	require.NoError(t, err)
	first, err := targets.Sharers.Of(t.Context(), fixture.Namespace, found.Target)
	require.NoError(t, err)
	require.Len(t, first, maxSharers)
	require.Equal(t, "Function media/twin-00", first[0])
	for range 5 {
		again, err := targets.Sharers.Of(t.Context(), fixture.Namespace, found.Target)
		require.NoError(t, err)
		require.Equal(t, first, again, "the status must not change with the order of the index")
	}
}

// shuffled lists in another order at each call, as an informer's index does.
type shuffled struct{ client.Reader }

func (s shuffled) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	limit := client.ListOptions{}
	limit.ApplyOptions(options)
	most := limit.Limit
	limit.Limit = 0
	if err := s.Reader.List(ctx, list, &limit); err != nil {
		return err
	}
	if l, ok := list.(*unstructured.UnstructuredList); ok {
		rand.Shuffle(len(l.Items), func(i, j int) { l.Items[i], l.Items[j] = l.Items[j], l.Items[i] })
		if most > 0 {
			l.Items = l.Items[:min(len(l.Items), int(most))]
		}
	}
	return nil
}

// An object may have 1.5 MB of subscription name and topics.
func TestIndexIsSmallerThanTheObject(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["subscriptionName"] = strings.Repeat("s", 700_000)
	var topics []any
	length := 700_000
	for i := range 10_000 {
		topics = append(topics, fmt.Sprintf("persistent://public/default/topic-%d", i))
		length += len(fmt.Sprint(topics[i]))
	}
	fixture.Spec(function)["input"] = map[string]any{"topics": topics}
	total := 0
	keys := indexWorkload(function)
	for _, key := range keys {
		total += len(key)
	}
	require.Len(t, keys, 10_001)
	require.Less(t, total, length)
}

func TestOverlap(t *testing.T) {
	pattern := func(patterns ...string) backlog.Subscription {
		return backlog.Subscription{Patterns: short(patterns...)}
	}
	topics := func(topics ...string) backlog.Subscription { return backlog.Subscription{Topics: short(topics...)} }
	tests := map[string]struct {
		a, b backlog.Subscription
		want bool
	}{
		"a common topic":                            {topics("a", "b"), topics("b", "c"), true},
		"no common topic":                           {topics("a"), topics("b"), false},
		"a topic of the pattern":                    {pattern("in-.*"), topics("in-1"), true},
		"a topic that only begins like the pattern": {pattern("in"), topics("in-1"), false},
		"alternatives are grouped":                  {pattern("x|in"), topics("in-1"), false},
		"equal patterns":                            {pattern("in-.*"), pattern("in-.*"), true},
		"nothing":                                   {topics(), pattern(), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, overlap(test.a, test.b))
			require.Equal(t, test.want, overlap(test.b, test.a))
		})
	}
}
