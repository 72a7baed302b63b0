// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	namespace = "pulsar-autoscaler"
	secret    = "adapter-serving"
	owner     = "pulsar-autoscaler-adapter-apiservices"
	group     = "/apis/custom.metrics.k8s.io/v1beta2"
	// lifetime of a certificate, of which a twelfth is the overlap of authorities.
	lifetime = 2 * time.Minute
)

func TestMain(m *testing.M) { shared.Main(m) }

// scene is a control plane with two replicas, of which the aggregator reaches the first.
type scene struct {
	*cluster.Cluster
	people  kubernetes.Interface
	dynamic dynamic.Interface
	// built is the adapter's executable, and rbac the files of its permissions.
	built      string
	kubeconfig string
	rbac       []string
	ports      []int
	replicas   []*proc.Process
}

func start(t *testing.T) *scene {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	sources := filepath.Join("..", "..")
	crds, err := filepath.Glob(filepath.Join(sources, "deploy", "crd", "*.yaml"))
	require.NoError(t, err)
	crds = append(crds, filepath.Join(sources, "test", "stage", "crd", "scaledobjects.yaml"))
	s := &scene{built: filepath.Join(t.TempDir(), "adapter")}
	s.rbac, err = filepath.Glob(filepath.Join(sources, "deploy", "rbac", "*.yaml"))
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.built, "../../cmd/adapter").CombinedOutput()
	require.NoError(t, err, string(out))
	s.Cluster, err = cluster.Start(t.Context(), cluster.Config{CRDs: crds, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	s.people, err = kubernetes.NewForConfig(s.RESTConfig())
	require.NoError(t, err)
	s.dynamic, err = dynamic.NewForConfig(s.RESTConfig())
	require.NoError(t, err)
	require.NoError(t, s.ApplyFiles(t.Context(), filepath.Join(sources, "deploy", "adapter", "namespace.yaml")))
	require.NoError(t, s.ApplyFiles(t.Context(), s.rbac...))
	require.NoError(t, s.Apply(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "adapter", "namespace": namespace},
		"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
	}}))
	s.ports, err = proc.FreePorts(2)
	require.NoError(t, err)
	s.kubeconfig, err = s.ServiceAccountKubeconfig(t.Context(), namespace, "adapter")
	require.NoError(t, err)
	return s
}

// adapters runs both replicas until the test ends, and applies their permissions again.
func (s *scene) adapters(t *testing.T, flags ...string) {
	t.Helper()
	require.NoError(t, s.ApplyFiles(t.Context(), s.rbac...))
	s.replicas = nil
	for i, port := range s.ports {
		replica, err := proc.Start(context.WithoutCancel(t.Context()), proc.Config{
			Name: fmt.Sprintf("adapter %d", i+1), Path: s.built, Args: slices.Concat([]string{
				"--kubeconfig=" + s.kubeconfig, "--lease-namespace=" + namespace, "--bind-address=127.0.0.1",
				"--secure-port=" + strconv.Itoa(port), "--service-port=" + strconv.Itoa(s.ports[0]),
				"--apiservice-owner=" + owner, "--log-format=text", "--shutdown-delay=0s",
			}, stage.PatientLease(), flags),
		})
		require.NoError(t, err)
		t.Cleanup(func() {
			const grace = 10 * time.Second
			err := replica.Stop(grace) // the Lease is free for the next test
			require.NoError(t, err, replica.LogTail(60))
		})
		s.replicas = append(s.replicas, replica)
	}
}

// await shows the replicas' logs when something does not come to hold.
func (s *scene) await(t *testing.T, what string, holds func(ctx context.Context) (bool, string, error)) {
	t.Helper()
	if err := cluster.WaitFor(t.Context(), what, 50*time.Millisecond, holds); err != nil {
		t.Fatalf("%v\nfirst:\n%s\nsecond:\n%s", err, s.replicas[0].LogTail(40), s.replicas[1].LogTail(40))
	}
}

func (s *scene) secret(ctx context.Context) (*corev1.Secret, error) {
	return s.people.CoreV1().Secrets(namespace).Get(ctx, secret, metav1.GetOptions{})
}

func apiServices() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

// served is the certificate that a replica shows.
func (s *scene) served(ctx context.Context, port int) ([]byte, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // compared with the Secret's below
	connection, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw, nil
}

// settled says whether both replicas serve the Secret's certificate, signed by the one authority that the APIServices
// trust.
func (s *scene) settled(ctx context.Context) (bool, string, error) {
	held, err := s.secret(ctx)
	if err != nil {
		return false, "", err
	}
	authorities, err := certutil.ParseCertsPEM(held.Data["ca.crt"])
	if err != nil || len(authorities) != 1 {
		return false, fmt.Sprintf("%d authorities: %v", len(authorities), err), nil
	}
	leaf, err := certutil.ParseCertsPEM(held.Data["tls.crt"])
	if err != nil || leaf[0].CheckSignatureFrom(authorities[0]) != nil {
		return false, fmt.Sprintf("not signed by the authority: %v", err), nil
	}
	for _, port := range s.ports {
		if shown, err := s.served(ctx, port); err != nil || !bytes.Equal(shown, leaf[0].Raw) {
			return false, fmt.Sprintf("port %d serves another certificate: %v", port, err), nil
		}
	}
	return s.trusts(ctx, held.Data["ca.crt"])
}

// bundle is what an APIService trusts, empty for nothing.
func (s *scene) bundle(ctx context.Context, version string) (string, error) {
	service, err := s.dynamic.Resource(apiServices()).Get(ctx, version+".custom.metrics.k8s.io", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	text, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(text)
	return string(bundle), err
}

// trusts says whether both APIServices have these authorities.
func (s *scene) trusts(ctx context.Context, authorities []byte) (bool, string, error) {
	for _, version := range []string{"v1beta1", "v1beta2"} {
		bundle, err := s.bundle(ctx, version)
		if err != nil || bundle != string(authorities) {
			return false, fmt.Sprintf("APIService %s has another bundle: %v", version, err), nil
		}
	}
	return true, "", nil
}

// load is requests through the aggregator.
type load struct {
	cancel  context.CancelFunc
	clients sync.WaitGroup

	// mu guards all below.
	mu       sync.Mutex
	sent     int
	failures []error
	// stall is the longest time for which the machine stood still.
	stall time.Duration
}

// load sends requests until they are stopped, from the first that is answered: the aggregator follows the condition of
// an APIService by milliseconds.
func (s *scene) load(t *testing.T) *load {
	t.Helper()
	s.await(t, "the API group to answer", func(ctx context.Context) (bool, string, error) {
		err := s.people.Discovery().RESTClient().Get().AbsPath(group).Do(ctx).Error()
		return err == nil, "", err
	})
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	l.clients.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
			l.mu.Lock()
			l.stall = max(l.stall, time.Since(began))
			l.mu.Unlock()
		}
	})
	for range 4 {
		l.clients.Go(func() {
			for ctx.Err() == nil {
				err := s.people.Discovery().RESTClient().Get().AbsPath(group).Do(ctx).Error()
				l.mu.Lock()
				l.sent++
				if err != nil && ctx.Err() == nil {
					l.failures = append(l.failures, err)
				}
				l.mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	return l
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// requireNoFailure stops the load. Where the machine stood still for half of the time for which both authorities are
// trusted, the API server may have followed too late.
func (l *load) requireNoFailure(t *testing.T) {
	t.Helper()
	l.cancel()
	l.clients.Wait()
	require.Greater(t, l.sent, 100)
	if l.stall > lifetime/12/2 {
		t.Logf("the machine stood still for %s, and %d of %d requests failed", l.stall, len(l.failures), l.sent)
		return
	}
	require.Empty(t, l.failures, "of %d requests", l.sent)
}

func TestServingCertificates(t *testing.T) {
	s := start(t)
	t.Run("Self replaces its authority under load", s.self)
	t.Run("Files replaces its authority under load", s.files)
	t.Run("Insecure verifies nothing", s.insecure)
}

func (s *scene) self(t *testing.T) {
	s.adapters(t, "--serving-certificate=Self", "--serving-certificate-lifetime="+lifetime.String())
	s.await(t, "both replicas to serve a certificate that the APIServices trust", s.settled)
	require.NoError(t, s.WaitMetricsAPI(t.Context()))
	before, err := s.secret(t.Context())
	require.NoError(t, err)

	load := s.load(t)
	_, err = s.people.CoreV1().Secrets(namespace).Patch(t.Context(), secret, types.JSONPatchType,
		[]byte(`[{"op": "remove", "path": "/data/ca.key"}]`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.await(t, "the authority to be another", func(ctx context.Context) (bool, string, error) {
		held, err := s.secret(ctx)
		if err != nil {
			return false, "", err
		}
		if bytes.Contains(held.Data["ca.crt"], before.Data["ca.crt"]) {
			return false, "the old one is trusted still", nil
		}
		return s.settled(ctx)
	})
	load.requireNoFailure(t)

	t.Run("the APIServices leave with their owner", func(t *testing.T) {
		require.NoError(t, s.people.RbacV1().ClusterRoles().Delete(t.Context(), owner, metav1.DeleteOptions{}))
		s.await(t, "the APIServices to be deleted", func(ctx context.Context) (bool, string, error) {
			for _, version := range []string{"v1beta1", "v1beta2"} {
				_, err := s.dynamic.Resource(apiServices()).Get(ctx, version+".custom.metrics.k8s.io", metav1.GetOptions{})
				if !apierrors.IsNotFound(err) {
					return false, fmt.Sprintf("%s: %v", version, err), nil
				}
			}
			return true, "", nil
		})
	})
}
