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
)

const (
	namespace = "pulsar-autoscaler"
	secret    = "adapter-serving"
	owner     = "pulsar-autoscaler-adapter-apiservices"
	group     = "/apis/custom.metrics.k8s.io/v1beta2"
	patience  = time.Minute
)

func TestMain(m *testing.M) { shared.Main(m) }

// scene is a control plane with two replicas, of which the aggregator reaches the first.
type scene struct {
	*cluster.Cluster
	people   kubernetes.Interface
	dynamic  dynamic.Interface
	ports    []int
	replicas []*proc.Process
}

func start(t *testing.T) *scene {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	sources := filepath.Join("..", "..")
	crds, err := filepath.Glob(filepath.Join(sources, "deploy", "crd", "*.yaml"))
	require.NoError(t, err)
	rbac, err := filepath.Glob(filepath.Join(sources, "deploy", "rbac", "*.yaml"))
	require.NoError(t, err)
	built := filepath.Join(t.TempDir(), "adapter")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, "../../cmd/adapter").CombinedOutput()
	require.NoError(t, err, string(out))

	s := &scene{}
	s.Cluster, err = cluster.Start(t.Context(), cluster.Config{CRDs: crds, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	s.people, err = kubernetes.NewForConfig(s.RESTConfig())
	require.NoError(t, err)
	s.dynamic, err = dynamic.NewForConfig(s.RESTConfig())
	require.NoError(t, err)
	require.NoError(t, s.ApplyFiles(t.Context(),
		append([]string{filepath.Join(sources, "deploy", "adapter", "namespace.yaml")}, rbac...)...))
	require.NoError(t, s.Apply(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "adapter", "namespace": namespace},
		"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
	}}))
	s.ports, err = proc.FreePorts(2)
	require.NoError(t, err)
	kubeconfig, err := s.ServiceAccountKubeconfig(t.Context(), namespace, "adapter")
	require.NoError(t, err)
	for i, port := range s.ports {
		replica, err := proc.Start(t.Context(), proc.Config{
			Name: fmt.Sprintf("adapter %d", i+1), Path: built, Args: []string{
				"--kubeconfig=" + kubeconfig, "--lease-namespace=" + namespace, "--bind-address=127.0.0.1",
				"--secure-port=" + strconv.Itoa(port), "--service-port=" + strconv.Itoa(s.ports[0]),
				"--serving-certificate=Self", "--serving-certificate-lifetime=2m", "--apiservice-owner=" + owner,
				"--log-format=text", "--shutdown-delay=0s",
			},
		})
		require.NoError(t, err)
		t.Cleanup(replica.Kill)
		s.replicas = append(s.replicas, replica)
	}
	return s
}

// await shows the replicas' logs when something does not come to hold.
func (s *scene) await(t *testing.T, what string, holds func(ctx context.Context) (bool, string, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := cluster.WaitFor(ctx, what, 50*time.Millisecond, holds); err != nil {
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
		return false, err.Error(), nil
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
	for _, version := range []string{"v1beta1", "v1beta2"} {
		service, err := s.dynamic.Resource(apiServices()).Get(ctx, version+".custom.metrics.k8s.io", metav1.GetOptions{})
		if err != nil {
			return false, err.Error(), nil
		}
		bundle, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
		if bundle != base64.StdEncoding.EncodeToString(held.Data["ca.crt"]) {
			return false, "another bundle in APIService " + version, nil
		}
	}
	return true, "", nil
}

// load sends requests through the aggregator until it is stopped, and returns how many, and the failures.
func (s *scene) load(t *testing.T) (stop func() (sent int, failures []error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var sent int
	var failures []error
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				err := s.people.Discovery().RESTClient().Get().AbsPath(group).Do(ctx).Error()
				mu.Lock()
				sent++
				if err != nil && ctx.Err() == nil {
					failures = append(failures, err)
				}
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	return func() (int, []error) {
		cancel()
		clients.Wait()
		return sent, failures
	}
}

func TestTheAuthorityIsReplacedUnderLoad(t *testing.T) {
	s := start(t)
	s.await(t, "both replicas to serve a certificate that the APIServices trust", s.settled)
	require.NoError(t, s.WaitMetricsAPI(t.Context()))
	before, err := s.secret(t.Context())
	require.NoError(t, err)

	stop := s.load(t)
	_, err = s.people.CoreV1().Secrets(namespace).Patch(t.Context(), secret, types.JSONPatchType,
		[]byte(`[{"op": "remove", "path": "/data/ca.key"}]`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.await(t, "the authority to be another", func(ctx context.Context) (bool, string, error) {
		held, err := s.secret(ctx)
		if err != nil {
			return false, err.Error(), nil
		}
		if bytes.Contains(held.Data["ca.crt"], before.Data["ca.crt"]) {
			return false, "the old one is trusted still", nil
		}
		return s.settled(ctx)
	})
	sent, failures := stop()
	require.Greater(t, sent, 100)
	require.Empty(t, failures, "of %d requests", sent)

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
