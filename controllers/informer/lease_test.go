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
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
)

func lease(holder string, renewed time.Time) *coordinationv1.Lease {
	micro := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "decider"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &micro},
	}
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
			func(d *DecisionMaker, tick func(time.Duration)) { d.observe(lease("a", start)); tick(leaseExpires) }, "",
		},
		"the holder went silent": {
			func(d *DecisionMaker, tick func(time.Duration)) {
				d.observe(lease("a", start))
				tick(leaseExpires + time.Second)
				d.observe(lease("a", start)) // a resync changes nothing
			}, "no decision maker: a, which holds Lease system/decider, has not renewed it since 2027-01-15T08:00:00Z",
		},
		"the first Lease counts by its renewTime": {
			func(d *DecisionMaker,
				_ func(time.Duration),
			) {
				d.observe(lease("a", start.Add(-time.Hour)))
			}, "has not renewed it since",
		},
		"an observed renewal counts by our own clock": {
			func(d *DecisionMaker, _ func(time.Duration)) {
				d.observe(lease("a", skewed))
				d.observe(lease("a", skewed.Add(2*time.Second)))
			}, "",
		},
		"another holder took over": {
			func(d *DecisionMaker, tick func(time.Duration)) {
				d.observe(lease("a", start))
				tick(time.Hour)
				d.observe(lease("b", start.Add(time.Hour)))
			}, "",
		},
		"the holder released the Lease, as at a rollout": {
			func(d *DecisionMaker, tick func(time.Duration)) {
				d.observe(lease("a", start))
				tick(time.Hour)
				d.observe(lease("", start.Add(time.Hour)))
				tick(leaseExpires)
			}, "",
		},
		"no holder followed the release": {
			func(d *DecisionMaker, tick func(time.Duration)) {
				d.observe(lease("", start))
				tick(leaseExpires + time.Second)
			}, "no decision maker: Lease system/decider has had no holder since 2027-01-15T08:00:00Z",
		},
		"the Lease was deleted": {
			func(d *DecisionMaker, _ func(time.Duration)) {
				d.observe(lease("a", start))
				d.forget(toolscache.DeletedFinalStateUnknown{Obj: lease("a", start)})
			}, "does not exist",
		},
		"another Lease does not count": {
			func(d *DecisionMaker, _ func(time.Duration)) {
				other := lease("a", start)
				other.Name = "scheduler"
				d.observe(other)
			}, "does not exist",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := start
			scheme, err := Scheme()
			require.NoError(t, err)
			d, err := NewDecisionMaker(t.Context(), &informertest.FakeInformers{Scheme: scheme},
				types.NamespacedName{Namespace: "system", Name: "decider"}, func() time.Time { return now })
			require.NoError(t, err)
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
