// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	acorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// checkInterval is the longest time between two looks: a deleted APIService is created again within it.
	checkInterval = 30 * time.Second
	// retryInterval is that while the APIServices are not as they should be.
	retryInterval = 2 * time.Second
)

// Config is what New needs. All fields but Owner are required.
type Config struct {
	// Secret is where authority and certificate are, which every replica may read and the Lease's holder writes.
	Secret types.NamespacedName
	// Service and Port are what the APIServices name.
	Service types.NamespacedName
	Port    int32
	// External says that external.metrics.k8s.io is served too.
	External bool
	// Owner is the ClusterRole with which the APIServices are deleted; empty for none.
	Owner string
	// Lifetime is that of a serving certificate.
	Lifetime time.Duration
	// Ready says why this replica cannot answer requests yet; nil when it can.
	Ready func() error
}

// keeper takes the stages.
type keeper struct {
	config Config
	client client.Client
	// changed signals that the Secret was seen; it holds one signal.
	changed chan struct{}
	// published is the bundle that the APIServices have, since then.
	published []byte
	since     time.Time
	// holder is the other server of a group, as last logged.
	holder map[string]string
}

// Setup adds what writes and what follows the Secret to the manager, and returns the certificate to serve.
func Setup(mgr manager.Manager, config Config) (*Certificate, error) {
	if config.Secret.Name == "" || config.Service.Name == "" || config.Port <= 0 || config.Lifetime <= 0 {
		return nil, errors.New("serving: Secret, Service, Port and Lifetime must be set")
	}
	direct, err := client.New(mgr.GetConfig(),
		client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("creating a client for the serving certificate: %w", err)
	}
	k := newKeeper(config, direct)
	certificate, err := newCertificate(mgr, config.Secret, k.notify)
	if err != nil {
		return nil, err
	}
	k.config.Ready = func() error { return errors.Join(certificate.Ready(), config.Ready()) }
	for _, part := range []manager.Runnable{certificate, k} {
		if err := mgr.Add(part); err != nil {
			return nil, fmt.Errorf("adding the serving certificate: %w", err)
		}
	}
	return certificate, nil
}

func newKeeper(config Config, direct client.Client) *keeper {
	return &keeper{config: config, client: direct, changed: make(chan struct{}, 1), holder: map[string]string{}}
}

func (k *keeper) notify() {
	select {
	case k.changed <- struct{}{}:
	default: // notified already
	}
}

// NeedLeaderElection is true: one replica writes.
func (k *keeper) NeedLeaderElection() bool { return true }

// Start takes the stages when they are due, until the context ends.
func (k *keeper) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("serving")
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		err := k.sync(ctx, logger, time.Now())
		interval := min(checkInterval, lifetime(k.config.Lifetime).overlap()/2)
		if k.published == nil {
			interval = min(interval, retryInterval)
		}
		if err != nil && ctx.Err() == nil {
			logger.Error(err, "keeping the serving certificate", "retryInterval", interval.String())
		}
		again.Reset(interval)
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		case <-k.changed:
		}
	}
}

// sync publishes what the Secret holds, and then takes the next stage: what clients do not trust is not served.
func (k *keeper) sync(ctx context.Context, logger logr.Logger, now time.Time) error {
	secret := &corev1.Secret{}
	if err := client.IgnoreNotFound(k.client.Get(ctx, k.config.Secret, secret)); err != nil {
		return fmt.Errorf("reading Secret %s: %w", k.config.Secret, err)
	}
	if err := k.publish(ctx, logger, secret.Data[keyAuthorities], now); err != nil {
		return err
	}
	host, l := k.config.Service.Name+"."+k.config.Service.Namespace+".svc", lifetime(k.config.Lifetime)
	stage := decode(secret.Data).next(now, host, l, k.trusted(now))
	if stage == settled {
		return nil
	}
	data, err := take(stage, secret.Data, now, host, l)
	if err != nil {
		return err
	}
	// The first authority comes with its certificate, without which the API server takes no Secret of this type.
	if urgent := decode(data).next(now, host, l, 0); urgent == issueCertificate {
		if data, err = take(urgent, data, now, host, l); err != nil {
			return err
		}
	}
	if err := k.write(ctx, secret.ResourceVersion, data); err != nil {
		return err
	}
	logger.Info("changed the serving certificate", "stage", stage, "secret", k.config.Secret.String())
	return nil // the watch of the Secret calls for the next stage
}

// trusted is how long clients have trusted all authorities, as far as this process knows.
func (k *keeper) trusted(now time.Time) time.Duration {
	if k.since.IsZero() {
		return 0
	}
	return now.Sub(k.since)
}

// publish has the APIServices trust the authorities, once requests would be answered.
func (k *keeper) publish(ctx context.Context, logger logr.Logger, bundle []byte, now time.Time) error {
	isReady := k.config.Ready() == nil
	if len(bundle) == 0 || !isReady {
		k.published, k.since = nil, time.Time{}
		return nil
	}
	if err := k.registerAll(ctx, logger, bundle); err != nil {
		k.published, k.since = nil, time.Time{}
		return err
	}
	if !bytes.Equal(bundle, k.published) {
		k.published, k.since = bundle, now
	}
	return nil
}

// write fails when the Secret has changed since it was read.
func (k *keeper) write(ctx context.Context, version string, data map[string][]byte) error {
	name := k.config.Secret
	secret := acorev1.Secret(name.Name, name.Namespace).WithType(corev1.SecretTypeTLS).WithData(data)
	if version != "" {
		secret.WithResourceVersion(version)
	}
	if err := k.client.Apply(ctx, secret, client.FieldOwner(plan.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing Secret %s: %w", name, err)
	}
	return nil
}
