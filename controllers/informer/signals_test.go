// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// testSignals reads from env. resolve resolves the queued keys and returns their number.
func testSignals(t *testing.T, env *testEnv) (s *Signals, resolve func() int) {
	t.Helper()
	s = newSignals(Config{Store: env.store, Clock: env.clock}, env.targets,
		NewPolicies(env.client, func() bool { return true }))
	var queue []signalKey
	s.enqueue = func(k signalKey) { queue = append(queue, k) }
	return s, func() (count int) {
		for ; len(queue) > 0; count++ {
			k := queue[0]
			queue = queue[1:]
			s.resolve(t.Context(), k)
		}
		return count
	}
}

func TestRequestedObjectIsTracked(t *testing.T) {
	policy := v1alpha1.GroupResource()
	tests := map[string]struct {
		resource schema.GroupResource
		objects  []client.Object
	}{
		"for a policy":   {policy, []client.Object{fixture.Policy(), fixture.Function()}},
		"for a Function": {cluster.ResourceFor(cluster.KindFunction), []client.Object{fixture.Function()}},
		"for a Sink":     {cluster.ResourceFor(cluster.KindSink), []client.Object{fixture.Workload(cluster.KindSink)}},
		"for a policy of a component": {
			policy, []client.Object{fixture.ComponentPolicy(), fixture.Mesh(), fixture.MeshChild()},
		},
		"for a policy that names what any target consumes": {
			policy, []client.Object{fixture.ConsumerPolicy("argoproj.io/v1alpha1", "Rollout")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, nil, append(test.objects, fixture.ConfigMap())...)
			s, resolve := testSignals(t, env)
			for range 3 {
				_, err := s.Read(test.resource, fixture.Key(), backlog.Slim, env.now)
				require.ErrorIs(t, err, backlog.ErrNoData)
			}
			require.Equal(t, 1, resolve(), "three requests, one resolution")
			_, err := s.Read(test.resource, fixture.Key(), backlog.Slim, env.now)
			require.ErrorIs(t, err, backlog.ErrNoData, "tracked, and not fetched yet")
			env.answer(700, 10_000)
			reading, err := s.Read(test.resource, fixture.Key(), backlog.Slim, env.now)
			requireReady(t, 700, reading, err)
		})
	}
}

func TestBytesAreMeasuredWhileRequested(t *testing.T) {
	env := newTestEnv(t, nil, fixture.Function(), fixture.ConfigMap())
	s, resolve := testSignals(t, env)
	read := func(detail backlog.Detail) backlog.Subscription {
		subscription, err := s.subscription(
			signalKey{resource: cluster.ResourceFor(cluster.KindFunction), key: fixture.Key()},
			detail,
			env.now,
		)
		require.NoError(t, err)
		return subscription
	}
	_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, env.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	resolve()
	require.False(t, read(backlog.Slim).Bytes)
	before := s.lookups[signalKey{resource: cluster.ResourceFor(cluster.KindFunction), key: fixture.Key()}].trackedAt
	env.after(time.Second)
	require.True(t, read(backlog.Bytes).Bytes)
	require.NotEqual(
		t,
		before,
		s.lookups[signalKey{resource: cluster.ResourceFor(cluster.KindFunction), key: fixture.Key()}].trackedAt,
		"tracking is renewed at once",
	)
	env.after(trackFor)
	require.True(t, read(backlog.Slim).Bytes, "requests for other values do not end it")
	env.after(time.Second)
	require.False(t, read(backlog.Slim).Bytes)
}

func TestUnusedKeysExpire(t *testing.T) {
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", fixture.Topic)
	for name, read := range map[string]func(*Signals, time.Time) (backlog.Reading, error){
		"an object": func(s *Signals, now time.Time) (backlog.Reading, error) {
			return s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, now)
		},
		"a subscription": func(s *Signals, now time.Time) (backlog.Reading, error) {
			return s.ReadSubscription("media", subscription, now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, nil, fixture.Function(), fixture.ConfigMap())
			s, resolve := testSignals(t, env)
			_, err := read(s, env.now)
			require.ErrorIs(t, err, backlog.ErrNoData)
			resolve()
			renewed := map[time.Time]bool{}
			for range 40 { // requests every 15 s keep it for ten minutes, even if no resolution ends
				env.after(15 * time.Second)
				env.store.Expire(env.now)
				s.expire(env.now)
				env.answer(700, 10_000)
				_, err = read(s, env.now)
				require.NoError(t, err)
				for _, l := range s.lookups {
					renewed[l.trackedAt] = true
				}
			}
			require.LessOrEqual(t, len(renewed), 11, "tracking is renewed at most once a minute")
			resolve() // what is queued stays
			env.after(trackFor + time.Second)
			env.store.Expire(env.now)
			s.expire(env.now)
			_, err = env.store.Read(subscription, env.now)
			require.ErrorIs(t, err, backlog.ErrNotTracked)
			require.Empty(t, s.lookups)
		})
	}
}

func TestSignalsFailWithAReason(t *testing.T) {
	t.Run("an object that does not exist", func(t *testing.T) {
		env := newTestEnv(t, nil)
		s, resolve := testSignals(t, env)
		for _, resource := range []schema.GroupResource{v1alpha1.GroupResource(), cluster.ResourceFor(cluster.KindFunction)} {
			_, err := s.Read(resource, fixture.Key(), backlog.Slim, env.now)
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		}
		require.Zero(t, resolve(), "no key is queued")
	})
	t.Run("an object of another kind", func(t *testing.T) {
		env := newTestEnv(t, nil)
		s, _ := testSignals(t, env)
		_, err := s.Read(schema.GroupResource{Group: "apps", Resource: "deployments"}, fixture.Key(), backlog.Slim, env.now)
		require.ErrorIs(t, err, backlog.ErrNotTracked)
		require.ErrorContains(t, err, "not for deployments.apps")
	})
	t.Run("a Function whose pattern cannot be compiled", func(t *testing.T) {
		invalid := fixture.Function()
		invalid.Object["spec"].(map[string]any)["input"] = map[string]any{"topicPattern": "a(?=b).*"}
		env := newTestEnv(t, nil, invalid, fixture.ConfigMap())
		s, resolve := testSignals(t, env)
		_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, env.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
		resolve()
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, env.now)
		require.ErrorContains(t, err, "write it without them, or name the topics")
		require.ErrorIs(t, err, backlog.ErrUnsupported, "not worth a retry")
	})
	t.Run("Functions that are not cached yet", func(t *testing.T) {
		env := newTestEnv(t, nil, fixture.Function())
		env.installed = false
		s, _ := testSignals(t, env)
		_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, env.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
	})
	t.Run("a deleted object", func(t *testing.T) {
		env := newTestEnv(t, nil, fixture.Function(), fixture.ConfigMap())
		s, resolve := testSignals(t, env)
		_, err := s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, env.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
		resolve()
		require.NoError(t, env.client.Delete(t.Context(), fixture.Function()))
		env.after(resolveAgain)
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, env.now)
		require.ErrorIs(t, err, backlog.ErrNoData, "until the next resolution")
		require.Equal(t, 1, resolve())
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, env.now)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

// silentWorker does not answer in time.
type silentWorker struct{ *fixture.Worker }

func (silentWorker) Describe(ctx context.Context, _ function.Component) (function.Description, error) {
	select {
	case <-ctx.Done():
	case <-time.After(resolveTimeout):
	}
	return function.Description{}, backlog.Errorf(backlog.ErrUnreachable, "no answer")
}

func TestAFunctionWorkerThatIsSlowDelaysOnlyWhatItRuns(t *testing.T) {
	for name, read := range map[string]func(*Signals, string) error{
		"triggers": func(s *Signals, name string) error {
			component := testComponent()
			component.Name = name
			_, err := s.ReadComponent("neighbour", component, time.Now())
			return err
		},
		"policies": func(s *Signals, name string) error {
			key := types.NamespacedName{Namespace: "neighbour", Name: name}
			_, err := s.Read(v1alpha1.GroupResource(), key, backlog.Slim, time.Now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{fixture.ConfigMap()}
			for i := range 50 {
				f, p := fixture.Function(), fixture.WorkerPolicy()
				f.SetName(strconv.Itoa(i))
				p.Namespace, p.Name, p.Spec.PulsarFunctionRef.Name = "neighbour", f.GetName(), f.GetName()
				objects = append(objects, f, p)
			}
			env := newTestEnv(t, fixture.NewWorker(), objects...)
			synctest.Test(t, func(t *testing.T) {
				background := target.NewBackground()
				env.configure = func(c *target.Config) {
					c.Worker, c.Background, c.Now = silentWorker{env.worker}, background, time.Now
				}
				env.restart()
				s := newSignals(Config{Store: env.store, Clock: time.Now}, env.targets,
					NewPolicies(env.client, func() bool { return true }))
				ctx, cancel := context.WithCancel(t.Context())
				var ends sync.WaitGroup
				for _, start := range []func(context.Context) error{s.Start, background.Start} {
					ends.Go(func() { require.NoError(t, start(ctx)) })
				}
				for i := range 10 {
					require.ErrorIs(t, read(s, strconv.Itoa(i)), backlog.ErrNoData)
				}
				synctest.Wait()
				resource := cluster.ResourceFor(cluster.KindFunction)
				tracked := 0
				for _, wait := range []time.Duration{0, resolveTimeout} {
					time.Sleep(wait)
					for i := range 50 {
						k := signalKey{resource: resource, key: types.NamespacedName{
							Namespace: fixture.Namespace, Name: strconv.Itoa(i),
						}}
						if _, err := s.subscription(k, backlog.Slim, time.Now()); err == nil {
							tracked++
						}
					}
					synctest.Wait()
				}
				require.Equal(t, 50, tracked)
				time.Sleep(2 * resolveTimeout)
				synctest.Wait()
				require.ErrorContains(t, read(s, "9"), "no answer", "four at a time")
				cancel()
				ends.Wait()
			})
		})
	}
}

// policyReads counts the reads of policies.
type policyReads struct {
	client.Reader

	count int
}

func (r *policyReads) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption,
) error {
	r.count++
	return r.Reader.Get(ctx, key, object, options...)
}

// TestAResolutionReadsThePolicyOnce: of another version, it might wait for a function worker after all.
func TestAResolutionReadsThePolicyOnce(t *testing.T) {
	env := newTestEnv(t, nil, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	s, resolve := testSignals(t, env)
	reads := &policyReads{Reader: env.client}
	s.policies = NewPolicies(reads, func() bool { return true })
	_, err := s.Read(v1alpha1.GroupResource(), fixture.Key(), backlog.Slim, env.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	reads.count = 0
	require.Equal(t, 1, resolve())
	require.Equal(t, 1, reads.count)
	_, err = s.subscription(signalKey{resource: v1alpha1.GroupResource(), key: fixture.Key()}, backlog.Slim, env.now)
	require.NoError(t, err)
}

// gate blocks reads of one cache and sends their namespaces once it is shut.
type gate struct {
	client.Reader
	shut chan string
}

func (g *gate) Get(ctx context.Context, key types.NamespacedName, object client.Object, o ...client.GetOption) error {
	if g.shut == nil {
		return g.Reader.Get(ctx, key, object, o...)
	}
	g.shut <- key.Namespace
	<-ctx.Done()
	return ctx.Err()
}

func TestNamespacesTakeTurnsForResolutions(t *testing.T) {
	const neighbours = 8
	policies := []client.Object{fixture.Policy()}
	for i := range neighbours {
		one := fixture.Policy()
		one.Namespace, one.Name = "neighbour", strconv.Itoa(i)
		policies = append(policies, one)
	}
	env := newTestEnv(t, nil, policies...)
	synctest.Test(t, func(t *testing.T) {
		background := target.NewBackground()
		env.configure = func(c *target.Config) { c.Background = background }
		env.restart()
		reads := &gate{Reader: env.client}
		s := newSignals(Config{Store: env.store, Clock: env.clock}, env.targets,
			NewPolicies(reads, func() bool { return true }))
		for i := range neighbours + 1 { // that of the victim is last
			p := policies[(i+1)%len(policies)]
			_, err := s.Read(v1alpha1.GroupResource(), client.ObjectKeyFromObject(p), backlog.Slim, env.now)
			require.ErrorIs(t, err, backlog.ErrNoData)
		}
		reads.shut = make(chan string, neighbours+1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- background.Start(ctx) }()
		synctest.Wait()
		require.Len(t, reads.shut, 4)
		first := []string{<-reads.shut, <-reads.shut, <-reads.shut, <-reads.shut}
		require.Contains(t, first, fixture.Policy().Namespace)
		cancel()
		require.NoError(t, <-done)
		require.Empty(t, reads.shut, "no resolution begins after the end")
	})
}

func TestStartResolvesUntilTheContextEnds(t *testing.T) {
	env := newTestEnv(t, nil, fixture.Function(), fixture.ConfigMap(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "token"},
		Data: map[string][]byte{
			"clientAuthenticationPlugin": []byte("token"), "clientAuthenticationParameters": []byte("token:hunter2"),
		},
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		background := target.NewBackground()
		env.configure = func(c *target.Config) { c.Background = background }
		env.restart()
		s := newSignals(
			Config{Store: env.store, Clock: func() time.Time { return env.now.Add(time.Since(start)) }},
			env.targets, NewPolicies(env.client, func() bool { return true }),
		)
		p := fixture.Policy()
		p.Spec.Pulsar = &v1alpha1.PulsarConnection{AuthSecret: "token"}
		found, err := env.targets.Finder.Find(t.Context(), fixture.Namespace, p.Spec)
		require.NoError(t, err)
		access := found.Subscription.Cluster.Access
		_, err = env.targets.Credentials.Credentials(t.Context(), access)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		for _, start := range []func(context.Context) error{s.Start, background.Start} {
			go func() { done <- start(ctx) }()
		}
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, env.now)
		require.ErrorIs(t, err, backlog.ErrNoData)
		synctest.Wait()
		env.answer(700, 10_000)
		_, err = s.Read(cluster.ResourceFor(cluster.KindFunction), fixture.Key(), backlog.Slim, env.now)
		require.NoError(t, err)
		time.Sleep(10*time.Minute + trackAgain)
		synctest.Wait()
		_, err = env.targets.Credentials.Credentials(t.Context(), access)
		require.ErrorIs(t, err, backlog.ErrNoData, "unused values are dropped")
		cancel()
		require.NoError(t, errors.Join(<-done, <-done))
	})
}
