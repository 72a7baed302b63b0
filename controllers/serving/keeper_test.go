// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	acorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// bench is a keeper on a fake API server with injected failures.
type bench struct {
	*keeper
	applied     int
	ready       error
	applyFails  error
	deleteFails error
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{}
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, apiregistrationv1.AddToScheme(scheme))
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, under client.WithWatch, object runtime.ApplyConfiguration,
			options ...client.ApplyOption,
		) error {
			if b.applyFails != nil {
				return b.applyFails
			}
			if secret, ok := object.(*acorev1.SecretApplyConfiguration); ok {
				if len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data[corev1.TLSPrivateKeyKey]) == 0 {
					return errors.New("data[tls.crt]: Required value") // as the API server responds for this type
				}
			}
			b.applied++
			return under.Apply(ctx, object, options...)
		},
		Delete: func(ctx context.Context, under client.WithWatch, object client.Object,
			options ...client.DeleteOption,
		) error {
			if b.deleteFails != nil {
				return b.deleteFails
			}
			return under.Delete(ctx, object, options...)
		},
	}).Build()
	b.keeper = newKeeper(Config{
		Secret:      types.NamespacedName{Namespace: "pulsar-autoscaler", Name: "adapter-serving"},
		APIServices: new(apiServices()), Host: host, Lifetime: time.Duration(month), Ready: func() error { return b.ready },
	}, server)
	return b
}

func apiServices() APIServices {
	return APIServices{
		Service: types.NamespacedName{Namespace: "pulsar-autoscaler", Name: "adapter"}, Port: 443, Owner: "owner",
	}
}

func owner() client.Object {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "owner", UID: "uid-of-owner"}}
}

func (b *bench) look(t *testing.T, now time.Time) {
	t.Helper()
	require.NoError(t, b.sync(t.Context(), logr.Discard(), now))
}

func (b *bench) secret(t *testing.T) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	require.NoError(t, b.client.Get(t.Context(), b.keeper.secret, secret))
	require.Equal(t, corev1.SecretTypeTLS, secret.Type)
	return secret.Data
}

// apiService returns nil without one.
func (b *bench) apiService(t *testing.T, version string) *apiregistrationv1.APIService {
	t.Helper()
	service := &apiregistrationv1.APIService{}
	err := b.client.Get(t.Context(), client.ObjectKey{Name: version + ".custom.metrics.k8s.io"}, service)
	require.NoError(t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return service
}

// pointing is the APIService of another server in namespace monitoring.
func pointing(version, service string) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: version + ".custom.metrics.k8s.io"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: cluster.CustomMetrics, Version: version,
			Service: &apiregistrationv1.ServiceReference{Namespace: "monitoring", Name: service},
		},
	}
}

func TestTheFirstCertificateComesBeforeTheAPIServices(t *testing.T) {
	b := newBench(t, owner())
	b.ready = errors.New("no certificate yet")
	b.look(t, start())
	require.True(t, decode(b.secret(t)).serves(start(), host))
	require.Nil(t, b.apiService(t, "v1beta1"), "no APIService before requests are answered")
	secret := &corev1.Secret{}
	require.NoError(t, b.client.Get(t.Context(), b.keeper.secret, secret))
	require.Len(t, secret.OwnerReferences, 1, "who deletes the ClusterRole deletes the Secret")
	require.Equal(t, "owner", secret.OwnerReferences[0].Name)

	b.ready = nil
	b.look(t, start())
	for version, priority := range map[string]int32{"v1beta1": 100, "v1beta2": 200} {
		service := b.apiService(t, version)
		require.Equal(t, apiregistrationv1.APIServiceSpec{
			Group: "custom.metrics.k8s.io", Version: version, GroupPriorityMinimum: 100, VersionPriority: priority,
			Service: &apiregistrationv1.ServiceReference{
				Namespace: "pulsar-autoscaler", Name: "adapter", Port: new(int32(443)),
			},
			CABundle: b.secret(t)[keyAuthorities],
		}, service.Spec)
		require.Equal(t, []metav1.OwnerReference{{
			APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "owner", UID: "uid-of-owner",
		}}, service.GetOwnerReferences())
	}
	b.applied = 0
	b.look(t, start().Add(time.Minute))
	require.Zero(t, b.applied, "what is as it should be is not written")
}

func TestAnAuthorityIsReplacedWithoutItsKey(t *testing.T) {
	b := newBench(t, owner())
	for range 3 {
		b.look(t, start())
	}
	old := b.secret(t)
	live := &corev1.Secret{}
	require.NoError(t, b.client.Get(t.Context(), b.keeper.secret, live))
	delete(live.Data, keyAuthorityKey)
	require.NoError(t, b.client.Update(t.Context(), live))

	now := start().Add(24 * time.Hour)
	b.look(t, now) // adds
	b.look(t, now) // publishes
	both := b.secret(t)
	require.Len(t, decode(both).authorities, 2)
	require.Equal(t, string(old[keyCertificate]), string(both[keyCertificate]))
	require.Equal(t, string(both[keyAuthorities]), string(b.apiService(t, "v1beta1").Spec.CABundle))

	b.look(t, now.Add(59*time.Minute))
	require.Equal(t, string(old[keyCertificate]), string(b.secret(t)[keyCertificate]), "clients may not trust it yet")
	now = now.Add(time.Hour)
	b.look(t, now)
	require.NotEqual(t, string(old[keyCertificate]), string(b.secret(t)[keyCertificate]))
	require.Len(t, decode(b.secret(t)).authorities, 2)

	now = now.Add(time.Hour)
	b.look(t, now)
	b.look(t, now)
	require.Len(t, decode(b.secret(t)).authorities, 1)
	require.Equal(t, string(b.secret(t)[keyAuthorities]), string(b.apiService(t, "v1beta2").Spec.CABundle))
}

func TestNothingIsServedThatCouldNotBePublished(t *testing.T) {
	b := newBench(t, owner())
	for range 3 {
		b.look(t, start())
	}
	long := start().Add(month.ofAuthority() * 3 / 4)
	b.look(t, long) // renews the certificate, which has expired
	b.look(t, long) // adds an authority
	before := b.secret(t)
	b.applyFails = errors.New("forbidden")
	for hours := range 48 {
		err := b.sync(t.Context(), logr.Discard(), long.Add(time.Duration(hours)*time.Hour))
		require.ErrorContains(t, err, "writing APIService")
		require.ErrorContains(t, err, "forbidden; the adapter needs deploy/rbac/certificate.yaml")
	}
	require.Equal(t, before, b.secret(t))

	b.applyFails = nil
	late := long.Add(48 * time.Hour)
	b.look(t, late)
	require.Equal(t, before, b.secret(t), "clients have trusted the new authority for no time")
	b.look(t, late.Add(time.Hour))
	require.NotEqual(t, string(before[keyCertificate]), string(b.secret(t)[keyCertificate]))
}

func TestAnotherServerKeepsItsAPIServices(t *testing.T) {
	foreign := pointing("v1beta1", "prometheus-adapter")
	b := newBench(t, owner(), foreign)
	for range 4 {
		b.look(t, start())
	}
	require.Nil(t, b.apiService(t, "v1beta2"))
	require.Equal(t, "prometheus-adapter", b.apiService(t, "v1beta1").Spec.Service.Name)

	require.NoError(t, b.client.Delete(t.Context(), foreign))
	b.look(t, start())
	require.NotNil(t, b.apiService(t, "v1beta1"))
	require.NotNil(t, b.apiService(t, "v1beta2"))
}

func TestAnotherServerOfBothVersionsIsLoggedOnce(t *testing.T) {
	for title, newer := range map[string]string{"one server": "prometheus-adapter", "two servers": "another-adapter"} {
		t.Run(title, func(t *testing.T) {
			b := newBench(t, owner(), pointing("v1beta1", "prometheus-adapter"), pointing("v1beta2", newer))
			var lines []string
			logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			for range 50 {
				require.NoError(t, b.clients.publish(t.Context(), logger, nil))
			}
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], "Service monitoring/prometheus-adapter")
		})
	}
}

// TestAnAPIGroupThatIsNoLongerServedIsWithdrawn: while it has no server, no namespace can be deleted.
func TestAnAPIGroupThatIsNoLongerServedIsWithdrawn(t *testing.T) {
	name := client.ObjectKey{Name: "v1beta1.external.metrics.k8s.io"}
	for title, c := range map[string]struct {
		change      func(service *apiregistrationv1.APIService)
		deleteFails error
		stays       bool
	}{
		"ours":      {func(*apiregistrationv1.APIService) {}, nil, false},
		"forbidden": {func(*apiregistrationv1.APIService) {}, errors.New("forbidden"), true},
		"of another server": {func(service *apiregistrationv1.APIService) {
			service.Spec.Service.Name = "keda-operator-metrics-apiserver"
		}, nil, true},
		"written by a user": {func(service *apiregistrationv1.APIService) { service.SetOwnerReferences(nil) }, nil, true},
	} {
		t.Run(title, func(t *testing.T) {
			b := newBench(t, owner())
			config := apiServices()
			config.External = true
			b.clients = newRegistrar(config, b.client)
			for range 3 {
				b.look(t, start())
			}
			service := &apiregistrationv1.APIService{}
			require.NoError(t, b.client.Get(t.Context(), name, service))
			c.change(service)
			require.NoError(t, b.client.Update(t.Context(), service))

			b.clients, b.deleteFails, b.published = newRegistrar(apiServices(), b.client), c.deleteFails, nil
			b.look(t, start())
			require.NotNil(t, b.published, "the certificate is renewed in any case")
			require.Equal(t, c.stays, b.client.Get(t.Context(), name, service) == nil)
			require.NotNil(t, b.apiService(t, "v1beta1"))
		})
	}
}

// TestWhatIsStillOursKeepsItsAuthorities: with an old bundle it would have no server, which keeps namespaces from being
// deleted. If it stayed the preferred version, the adapter would get the requests for the other server.
func TestWhatIsStillOursKeepsItsAuthorities(t *testing.T) {
	b := newBench(t, owner())
	for range 4 {
		b.look(t, start())
	}
	foreign := b.apiService(t, "v1beta1")
	foreign.Spec.Service.Name = "prometheus-adapter"
	require.NoError(t, b.client.Update(t.Context(), foreign))
	theirs := b.apiService(t, "v1beta1").Spec
	live := &corev1.Secret{}
	require.NoError(t, b.client.Get(t.Context(), b.keeper.secret, live))
	delete(live.Data, keyAuthorityKey)
	require.NoError(t, b.client.Update(t.Context(), live))
	for range 2 { // adds an authority, and publishes it
		b.look(t, start().Add(24*time.Hour))
	}
	require.Len(t, decode(b.secret(t)).authorities, 2)
	require.Equal(t, string(b.secret(t)[keyAuthorities]), string(b.apiService(t, "v1beta2").Spec.CABundle))
	require.Equal(t, theirs, b.apiService(t, "v1beta1").Spec)
	require.Equal(t, int32(1), b.apiService(t, "v1beta2").Spec.VersionPriority)

	require.NoError(t, b.client.Delete(t.Context(), b.apiService(t, "v1beta1")))
	b.look(t, start().Add(24*time.Hour))
	require.Equal(t, int32(200), b.apiService(t, "v1beta2").Spec.VersionPriority)
}

func TestAMissingOwnerIsAnError(t *testing.T) {
	b := newBench(t)
	err := b.sync(t.Context(), logr.Discard(), start())
	require.Zero(t, b.applied, "what has no owner would stay behind")
	require.ErrorContains(t, err, "reading ClusterRole owner, which owns Secrets and APIServices")
}

func TestTheKeeperRenewsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, owner())
		b.lifetime = lifetime(time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Start(ctx) }()
		time.Sleep(10 * time.Second)
		first := b.secret(t)
		require.NotNil(t, b.apiService(t, "v1beta1"))

		require.NoError(t, b.client.Delete(ctx, b.apiService(t, "v1beta1")))
		time.Sleep(checkInterval)
		require.NotNil(t, b.apiService(t, "v1beta1"), "a deleted APIService is created again")

		time.Sleep(40 * time.Minute)
		require.NotEqual(t, string(first[keyCertificate]), string(b.secret(t)[keyCertificate]))
		require.Equal(t, string(first[keyAuthorities]), string(b.secret(t)[keyAuthorities]))
		stop()
		require.NoError(t, <-done)
	})
}

func TestAProblemIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, owner())
		b.applyFails = errors.New("forbidden")
		lines := 0
		logger := funcr.New(func(_, _ string) { lines++ }, funcr.Options{})
		ctx, stop := context.WithCancel(log.IntoContext(t.Context(), logger))
		done := make(chan error, 1)
		go func() { done <- b.Start(ctx) }()
		time.Sleep(time.Minute)
		stop()
		require.NoError(t, <-done)
		require.Equal(t, 1, lines)
	})
}
