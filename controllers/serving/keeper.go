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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	acorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ametav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// checkInterval is the longest time between two syncs: a deleted APIService is recreated within it.
	checkInterval = 30 * time.Second
	// retryInterval replaces it while clients do not trust the authorities.
	retryInterval = 2 * time.Second
)

// Config configures Setup.
type Config struct {
	// Secret has the authority and the certificate, and every replica may read it. The Lease's holder writes it, or every
	// replica of a program that has no Lease.
	Secret types.NamespacedName
	// Host is the name that clients verify.
	Host string
	// Lifetime of a serving certificate.
	Lifetime time.Duration
	// APIServices get the authority; nil with Client.
	APIServices *APIServices
	// Client gets the authority and a certificate; zero with APIServices.
	Client Client
	// Ready returns why this replica cannot serve requests yet; nil if it can.
	Ready func() error
}

func (config Config) check() error {
	switch {
	case config.Secret.Name == "" || config.Host == "" || config.Lifetime <= 0 || config.Ready == nil:
		return errors.New("serving: Secret, Host, Lifetime and Ready must be set")
	case config.APIServices != nil:
		return config.APIServices.check()
	case config.Client.Secret.Name == "" || config.Client.Secret.Namespace == "":
		return errors.New("serving: APIServices or Client must be set")
	}
	return nil
}

// publisher makes clients trust the authorities of the Secret's data.
type publisher interface {
	publish(ctx context.Context, logger logr.Logger, data map[string][]byte) error
}

type keeper struct {
	secret   types.NamespacedName
	owner    string // the ClusterRole that owns the Secret; empty for none
	host     string
	lifetime lifetime
	ready    func() error
	clients  publisher
	client   client.Client
	// changed signals an event of the Secret; it holds one signal.
	changed chan struct{}
	// published is the bundle that clients have, and since when.
	published []byte
	since     time.Time
}

// Setup adds the writer and the watch of the Secret to the manager, and returns the certificate to serve.
func Setup(mgr manager.Manager, config Config) (*Certificate, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	direct, err := newClient(mgr)
	if err != nil {
		return nil, err
	}
	k := newKeeper(config, direct)
	certificate, err := newCertificate(mgr, config.Secret, k.notify)
	if err != nil {
		return nil, err
	}
	k.ready = func() error { return errors.Join(certificate.Ready(), config.Ready()) }
	for _, part := range []manager.Runnable{certificate, k} {
		if err := mgr.Add(part); err != nil {
			return nil, fmt.Errorf("adding the serving certificate: %w", err)
		}
	}
	return certificate, nil
}

// newClient bypasses the manager's cache, which has neither Secrets nor APIServices.
func newClient(mgr manager.Manager) (client.Client, error) {
	direct, err := client.New(mgr.GetConfig(),
		client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("creating a client for the serving certificate: %w", err)
	}
	return direct, nil
}

func newKeeper(config Config, direct client.Client) *keeper {
	k := &keeper{
		secret: config.Secret, host: config.Host, lifetime: lifetime(config.Lifetime), ready: config.Ready,
		clients: clientSecret{config.Client, direct}, owner: config.Client.Owner, client: direct,
		changed: make(chan struct{}, 1),
	}
	if config.APIServices != nil {
		k.clients, k.owner = newRegistrar(*config.APIServices, direct), config.APIServices.Owner
	}
	return k
}

func (k *keeper) notify() {
	select {
	case k.changed <- struct{}{}:
	default: // notified already
	}
}

// NeedLeaderElection is true: one replica writes.
func (k *keeper) NeedLeaderElection() bool { return true }

// Start carries out due stages until the context ends.
func (k *keeper) Start(ctx context.Context) error {
	repeat(ctx, "keeping the serving certificate", k.changed,
		func(ctx context.Context, logger logr.Logger) (time.Duration, error) {
			err := k.sync(ctx, logger, time.Now())
			interval := min(checkInterval, k.lifetime.overlap()/2)
			if k.published == nil {
				interval = min(interval, retryInterval)
			}
			return interval, err
		})
	return nil
}

// repeat calls sync until the context ends: after the interval that it returns, and at each signal. Of equal failures
// it logs the first.
func repeat(ctx context.Context, failed string, signal <-chan struct{},
	sync func(context.Context, logr.Logger) (time.Duration, error),
) {
	logger := log.FromContext(ctx).WithName("serving")
	problem := ""
	for {
		interval, err := sync(ctx, logger)
		switch {
		case err == nil:
			problem = ""
		case ctx.Err() == nil && err.Error() != problem:
			problem = err.Error()
			logger.Error(err, failed, "retryInterval", interval.String())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		case <-signal:
		}
	}
}

// sync publishes the Secret's authorities, and then carries out the next stage: no certificate is served before clients
// trust it.
func (k *keeper) sync(ctx context.Context, logger logr.Logger, now time.Time) error {
	secret := &corev1.Secret{}
	if err := client.IgnoreNotFound(k.client.Get(ctx, k.secret, secret)); err != nil {
		return fmt.Errorf("reading Secret %s: %w", k.secret, err)
	}
	if err := k.publish(ctx, logger, secret.Data, now); err != nil {
		return err
	}
	stage := decode(secret.Data).next(now, k.host, k.lifetime, k.trusted(now))
	if stage == settled {
		return nil
	}
	data, err := take(stage, secret.Data, now, k.host, k.lifetime)
	if err != nil {
		return err
	}
	// The first authority is written together with its certificate: the API server rejects a Secret of this type without
	// one.
	if urgent := decode(data).next(now, k.host, k.lifetime, 0); urgent == issueCertificate {
		if data, err = take(urgent, data, now, k.host, k.lifetime); err != nil {
			return err
		}
	}
	if err := k.write(ctx, secret.ResourceVersion, data); apierrors.IsConflict(err) {
		return nil // another replica was first; the watch of the Secret syncs again
	} else if err != nil {
		return err
	}
	logger.Info("changed the serving certificate", "stage", stage, "secret", k.secret.String())
	return nil // the watch of the Secret syncs again for the next stage
}

// trusted is how long clients have trusted all authorities, as far as this process knows.
func (k *keeper) trusted(now time.Time) time.Duration {
	if k.since.IsZero() {
		return 0
	}
	return now.Sub(k.since)
}

// publish makes clients trust the authorities, once this replica can serve requests.
func (k *keeper) publish(ctx context.Context, logger logr.Logger, data map[string][]byte, now time.Time) error {
	bundle, isReady := data[keyAuthorities], k.ready() == nil
	if len(bundle) == 0 || !isReady {
		k.published, k.since = nil, time.Time{}
		return nil
	}
	if err := k.clients.publish(ctx, logger, data); err != nil {
		k.published, k.since = nil, time.Time{}
		return err
	}
	if !bytes.Equal(bundle, k.published) {
		k.published, k.since = bundle, now
	}
	return nil
}

// write fails if the Secret has another version by now.
func (k *keeper) write(ctx context.Context, version string, data map[string][]byte) error {
	owners, err := ownerOf(ctx, k.client, k.owner)
	if err != nil {
		return err
	}
	secret := newSecret(k.secret, data, owners)
	if version != "" {
		secret.WithResourceVersion(version)
	}
	return apply(ctx, k.client, secret)
}

func newSecret(name types.NamespacedName, data map[string][]byte, owners []metav1.OwnerReference,
) *acorev1.SecretApplyConfiguration {
	secret := acorev1.Secret(name.Name, name.Namespace).WithType(corev1.SecretTypeTLS).WithData(data)
	for _, owner := range owners {
		secret.WithOwnerReferences(ametav1.OwnerReference().WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).
			WithName(owner.Name).WithUID(owner.UID))
	}
	return secret
}

func apply(ctx context.Context, writer client.Client, secret *acorev1.SecretApplyConfiguration) error {
	if err := writer.Apply(ctx, secret, client.FieldOwner(plan.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", *secret.Namespace, *secret.Name, err)
	}
	return nil
}
