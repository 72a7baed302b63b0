// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// Policies reads policies from the cache. It is safe for concurrent use.
type Policies struct {
	reader client.Reader
	synced func() bool
	// missing says why the cache will not have policies; nil when it always will.
	missing func() error
}

// NewPolicies reads the policies of a cache; synced says whether it has all of them.
func NewPolicies(reader client.Reader, synced func() bool) *Policies {
	return &Policies{reader: reader, synced: synced}
}

// Synced reports whether all policies are in the cache.
func (p *Policies) Synced() bool { return p.synced() }

// Policy returns the policy, which the caller must not change. It fails with an API server's NotFound, with
// backlog.ErrNoData until the cache has synced, and with backlog.ErrUnsupported when the kind is not installed.
func (p *Policies) Policy(key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error) {
	return p.read(context.Background(), key)
}

func (p *Policies) read(ctx context.Context, key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error) {
	if !p.synced() {
		return nil, p.unread()
	}
	ctx, cancel := context.WithTimeout(ctx, target.CacheTimeout)
	defer cancel()
	var found v1alpha1.AutoscalingPolicy
	if err := p.reader.Get(ctx, key, &found, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading policy %s: %w", key, err)
	}
	return &found, nil
}

func (p *Policies) unread() error {
	if p.missing != nil {
		if err := p.missing(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: policies are being read", backlog.ErrNoData)
}

// connection is target.ConnectionOf; backlog.ErrNoData until the cache has synced.
func (p *Policies) connection(ctx context.Context, namespace string,
	ref v1alpha1.ScaleTargetRef,
) (*v1alpha1.PulsarConnection, error) {
	if !p.synced() {
		return nil, p.unread()
	}
	return target.ConnectionOf(ctx, p.reader, namespace, ref)
}
