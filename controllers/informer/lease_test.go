// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func lease(holder string, renewed time.Time) *coordinationv1.Lease {
	micro := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "decider"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &micro},
	}
}

func seen(d *DecisionMaker, lease *coordinationv1.Lease) {
	d.observe(client.ObjectKeyFromObject(lease), lease)
}

func TestDecisionMakerAlive(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	skewed := start.Add(-10 * time.Minute) // the holder's clock is behind by that much
	tests := map[string]struct {
		seen func(d *DecisionMaker, tick func(time.Duration))
		dead string
	}{
		"no Lease exists": {
			func(*DecisionMaker, func(time.Duration)) {}, "no decision maker: Lease system/decider does not exist",
		},
		"the holder renewed lately": {
			func(d *DecisionMaker, tick func(time.Duration)) { seen(d, lease("a", start)); tick(leaseExpires) }, "",
		},
		"the holder went silent": {
			func(d *DecisionMaker, tick func(time.Duration)) {
				seen(d, lease("a", start))
				tick(leaseExpires + time.Second)
				seen(d, lease("a", start)) // a resync changes nothing
			}, "no decision maker: a, which holds Lease system/decider, has not renewed it since 2027-01-15T08:00:00Z",
		},
		"the first Lease counts by its renewTime": {
			func(d *DecisionMaker,
				_ func(time.Duration),
			) {
				seen(d, lease("a", start.Add(-time.Hour)))
			}, "has not renewed it since",
		},
		"an observed renewal counts by our own clock": {
			func(d *DecisionMaker, _ func(time.Duration)) {
				seen(d, lease("a", skewed))
				seen(d, lease("a", skewed.Add(2*time.Second)))
			}, "",
		},
		"another holder took over": {
			func(d *DecisionMaker, tick func(time.Duration)) {
				seen(d, lease("a", start))
				tick(time.Hour)
				seen(d, lease("b", start.Add(time.Hour)))
			}, "",
		},
		"the holder released the Lease, as at a rollout": {
			func(d *DecisionMaker, tick func(time.Duration)) {
				seen(d, lease("a", start))
				tick(time.Hour)
				seen(d, lease("", start.Add(time.Hour)))
				tick(leaseExpires)
			}, "",
		},
		"no holder followed the release": {
			func(d *DecisionMaker, tick func(time.Duration)) {
				seen(d, lease("", start))
				tick(leaseExpires + time.Second)
			}, "no decision maker: Lease system/decider has had no holder since 2027-01-15T08:00:00Z",
		},
		"the Lease was deleted": {
			func(d *DecisionMaker, _ func(time.Duration)) {
				seen(d, lease("a", start))
				d.observe(d.config.Lease, nil)
			}, "does not exist",
		},
		"another Lease does not count": {
			func(d *DecisionMaker, _ func(time.Duration)) {
				other := lease("a", start)
				other.Name = "scheduler"
				seen(d, other)
			}, "does not exist",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := start
			scheme, err := Scheme()
			require.NoError(t, err)
			d := NewDecisionMaker(Config{
				Lease:        types.NamespacedName{Namespace: "system", Name: "decider"},
				PollInterval: 10 * time.Second, Clock: func() time.Time { return now },
			}, nil)
			require.NoError(t, d.Follow(t.Context(), &informertest.FakeInformers{Scheme: scheme}))
			test.seen(d, func(by time.Duration) { now = now.Add(by) })
			if test.dead == "" {
				require.NoError(t, d.Alive(now))
			} else {
				require.ErrorContains(t, d.Alive(now), test.dead)
				var aged interface{ Since() time.Time }
				require.ErrorAs(t, d.Alive(now), &aged)
				known := d.seen.Load() != nil
				require.Equal(t, known, !aged.Since().IsZero())
				require.True(t, !known || now.Sub(aged.Since()) > leaseExpires)
			}
		})
	}
}

func TestADecisionGrowsTooOld(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	type decided struct {
		at    time.Time
		why   string
		known bool
	}
	tests := map[string]struct {
		// age of the written decision, by the clock of the holder; nil without one.
		age    *time.Duration
		behind time.Duration
		own    *decided
		old    string
	}{
		"it was written a heartbeat ago": {age: new(5*time.Minute + 59*time.Second)},
		"it was not renewed": {
			age: new(6*time.Minute + time.Second), old: "no decision since 2027-01-15T07:53:59Z: the holder",
		},
		"there is none":                     {},
		"the clock of the holder is behind": {age: new(5 * time.Minute), behind: 10 * time.Minute},
		"the clock of the holder is ahead": {
			age: new(7 * time.Minute), behind: -10 * time.Minute, old: "no decision since",
		},
		"this process decided just now": {
			age: new(time.Hour), own: &decided{at: start.Add(-30 * time.Second), known: true},
		},
		"this process does not decide for it": {age: new(time.Minute), own: &decided{}},
		"a reconcile hangs": {
			age: new(time.Minute), own: &decided{at: start.Add(-31 * time.Second), known: true},
			old: "no decision since 2027-01-15T07:59:29Z: no reconcile of the policy has ended since",
		},
		"reconciles fail": {
			age: new(time.Minute), own: &decided{start.Add(-time.Minute), "finding the target: forbidden", true},
			old: "no decision since 2027-01-15T07:59:00Z: finding the target: forbidden",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var own OwnDecision
			if test.own != nil {
				own = func(key types.NamespacedName) (time.Time, string, bool) {
					require.Equal(t, "media/resize", key.String())
					return test.own.at, test.own.why, test.own.known
				}
			}
			d := NewDecisionMaker(Config{
				Lease:        types.NamespacedName{Namespace: "system", Name: "decider"},
				PollInterval: 10 * time.Second, Clock: func() time.Time { return start },
			}, own)
			holders := start.Add(-test.behind)
			seen(d, lease("a", holders.Add(-2*time.Second)))
			seen(d, lease("a", holders))
			p := &v1alpha1.AutoscalingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "resize"}}
			if test.age != nil {
				p.Status.Decision = &v1alpha1.Decision{Time: metav1.NewTime(holders.Add(-*test.age))}
			}
			err := d.Current(p, start)
			if test.old == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.old)
			var aged interface{ Since() time.Time }
			require.ErrorAs(t, err, &aged)
			require.False(t, aged.Since().IsZero())
		})
	}
}

func TestWithoutADecisionMakerNoDecisionIsCurrent(t *testing.T) {
	d := NewDecisionMaker(Config{
		Lease: types.NamespacedName{Namespace: "system", Name: "decider"}, PollInterval: time.Second, Clock: time.Now,
	}, func(types.NamespacedName) (time.Time, string, bool) { return time.Now(), "", true })
	require.ErrorContains(t, d.Current(&v1alpha1.AutoscalingPolicy{}, time.Now()), "does not exist")
}
