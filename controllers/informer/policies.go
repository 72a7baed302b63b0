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
	// unread says why the cache does not have all policies; nil if it has.
	unread func() error
}

// NewPolicies reads the policies of a cache; synced says whether it has all of them.
func NewPolicies(reader client.Reader, synced func() bool) *Policies {
	return &Policies{reader: reader, unread: func() error {
		if synced() {
			return nil
		}
		return fmt.Errorf("%w: policies are being read", backlog.ErrNoData)
	}}
}

// Policy returns the policy, which the caller must not change. It fails with an API server's NotFound, with
// backlog.ErrNoData until the cache has synced, and with backlog.ErrUnsupported when the kind is not installed.
func (p *Policies) Policy(key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error) {
	return p.read(context.Background(), key)
}

func (p *Policies) read(ctx context.Context, key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error) {
	if err := p.unread(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, target.CacheTimeout)
	defer cancel()
	var found v1alpha1.AutoscalingPolicy
	if err := p.reader.Get(ctx, key, &found, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading policy %s: %w", key, err)
	}
	return &found, nil
}

// connection is target.ConnectionOf; backlog.ErrNoData until the cache has synced.
func (p *Policies) connection(ctx context.Context, namespace string,
	ref v1alpha1.ScaleTargetRef,
) (*v1alpha1.PulsarConnection, error) {
	if err := p.unread(); err != nil {
		return nil, err
	}
	return target.ConnectionOf(ctx, p.reader, namespace, ref)
}
