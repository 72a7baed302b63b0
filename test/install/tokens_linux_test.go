// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/node"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/workerpods"
)

// followTokens has a broker that requires tokens, and a function worker in it that runs a function as a StatefulSet.
func (s *scene) followTokens(t *testing.T, w *walker) {
	namespaces := []string{"pulsar", "media", "shop"}
	for _, name := range namespaces {
		require.NoError(t, s.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	signer, err := identity.NewSigner()
	require.NoError(t, err)
	admin, err := signer.Token("admin", time.Hour)
	require.NoError(t, err)
	b := s.startSecured(t, signer, admin)
	adminURL, err := node.Expose(t.Context(), b.AdminURL())
	require.NoError(t, err)
	const topic = "persistent://public/default/resize-in"
	endLoad := runFunction(t, b, admin, topic)

	key, err := signer.PrivateKey()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "private.key"), key, 0o600))
	client := fmt.Sprintf("webServiceUrl=%s\nbrokerServiceUrl=%s\nauthPlugin=org.apache.pulsar.client.impl.auth."+
		"AuthenticationToken\nauthParams=token:%s\n", b.AdminURL(), b.ServiceURL(), admin)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "client.conf"), []byte(client), 0o600))
	s.follow(t, w, walk{
		page:     "token-authentication.md",
		names:    []string{"/keys", dir, "https://pulsar-broker.pulsar:8443", adminURL},
		programs: filepath.Join(filepath.Dir(b.Dist().Lib), "bin"),
		env:      []string{"PULSAR_CLIENT_CONF=" + filepath.Join(dir, "client.conf"), "PULSAR_MEM=-Xmx128m"},
		after: map[string]func(t *testing.T, output string){
			"4. The policies": func(t *testing.T, _ string) {
				s.Await(t, "more replicas of the StatefulSet", func(ctx context.Context) (bool, string, error) {
					set := &appsv1.StatefulSet{}
					key := types.NamespacedName{Namespace: "pulsar", Name: "pf-public-default-resize"}
					if err := s.Client.Get(ctx, key, set); err != nil {
						return false, "", err
					}
					return *set.Spec.Replicas > 1, fmt.Sprint(set.Status), nil
				})
				endLoad()
			},
		},
	})
	for _, name := range namespaces {
		require.NoError(t, s.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
}

// startSecured starts a broker that requires tokens of the signer, with a function worker and the pods of its
// functions, and the Pulsar namespaces of the guide.
func (s *scene) startSecured(t *testing.T, signer *identity.Signer, admin string) *broker.Broker {
	t.Helper()
	root := workerpods.Start(t, s.Cluster.RESTConfig())
	public, err := signer.PublicKey()
	require.NoError(t, err)
	b, err := broker.Start(t.Context(), broker.Config{
		Version: distribution.Version, Token: admin, Progress: os.Stderr, JVMFlags: []string{"-Xmx512m"},
		Settings: map[string]string{
			"authenticationEnabled": "true", "authorizationEnabled": "true", "superUserRoles": "admin",
			"authenticationProviders":              "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
			"tokenPublicKey":                       public,
			"brokerClientAuthenticationPlugin":     "org.apache.pulsar.client.impl.auth.AuthenticationToken",
			"brokerClientAuthenticationParameters": "token:" + admin,
		},
		Kubernetes: &broker.Kubernetes{Kubeconfig: s.Cluster.Kubeconfig(), Namespace: "pulsar", Root: root},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the broker printed:\n%s", b.LogTail(60))
		}
		require.NoError(t, b.Discard())
	})
	for _, path := range []string{"tenants/media", "tenants/shop", "namespaces/media/images", "namespaces/shop/orders"} {
		body := "{}"
		if filepath.Dir(path) == "tenants" {
			body = `{"allowedClusters":["standalone"],"adminRoles":[]}`
		}
		_, err := b.Demand(t.Context(), http.MethodPut, "/admin/v2/"+path, []byte(body))
		require.NoError(t, err)
	}
	return b
}

// runFunction registers a function with a topic and publishes to it, until endLoad is called.
func runFunction(t *testing.T, b *broker.Broker, admin, topic string) (endLoad func()) {
	t.Helper()
	require.NoError(t, b.CreateTopic(t.Context(), topic, 0))
	collector, err := replica.DiscardReports(t.Context())
	require.NoError(t, err)
	jar, err := replica.Jar(t.Context(), b.Dist(), os.Stderr)
	require.NoError(t, err)
	require.NoError(t, b.CreateComponent(t.Context(), broker.Component{
		Kind: string(function.KindFunction), Jar: jar, Config: map[string]any{
			"tenant": "public", "namespace": "default", "name": "resize", "className": replica.FunctionClass,
			"runtime": "JAVA", "parallelism": 1, "autoAck": true,
			"inputSpecs": map[string]any{topic: map[string]any{"receiverQueueSize": 5}},
			"userConfig": map[string]any{
				"collector": collector, "token": "resize", "serviceMicros": "200000", "failEvery": "0",
			},
		},
	}))
	publisher, err := load.New(load.Config{ServiceURL: b.ServiceURL(), Topic: topic, Token: admin})
	require.NoError(t, err)
	t.Cleanup(publisher.Close)
	publishing, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return publisher.Run(publishing, load.Constant(rate)) })
	return func() {
		cancel()
		require.NoError(t, group.Wait())
	}
}
