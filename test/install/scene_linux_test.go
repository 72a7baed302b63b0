// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/node"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	release   = "pulsar-autoscaler"
	namespace = "pulsar-autoscaler"
	registry  = "registry.example/pulsar-autoscaler"
	tag       = "v0.0.0-test"
	// tagBefore is another tag of the same image.
	tagBefore = "v0.0.0-before"
	// patience limits waits of Helm and of goroutines. Tests log how long they took.
	patience = cluster.WaitLimit
	pollTime = 100 * time.Millisecond
)

// scene is a cluster with Pulsar, Function Mesh and one node. The product is not installed.
type scene struct {
	*stage.Stage
	client   kubernetes.Interface
	node     *node.Node
	built    artifacts
	adminURL string // of Pulsar, as pods reach it
	stop     context.CancelFunc
	group    *errgroup.Group
	home     string
}

var theScene = shared.New("a real control plane, Pulsar and Helm", openScene, (*scene).close)

func openScene(ctx context.Context) (_ *scene, err error) {
	s := &scene{built: artifacts{dir: os.Getenv(variableArtifacts)}, group: &errgroup.Group{}}
	ctx, s.stop = context.WithCancel(ctx)
	s.Stage, err = stage.Open(ctx, stage.Config{
		HPASyncPeriod: 2 * time.Second, WithoutAdapter: true, Controllers: node.Controllers(), Progress: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	config := s.Cluster.RESTConfig()
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if s.adminURL, err = node.Expose(ctx, s.Broker.AdminURL()); err != nil {
		return nil, err
	}
	images := map[string]string{
		registry + "/adapter:" + tag: s.built.image("adapter"), registry + "/adapter:" + tagBefore: s.built.image("adapter"),
	}
	if runAll() {
		images[registry+"/scaler:"+tag] = s.built.image("scaler")
	}
	s.node, err = node.New(ctx, node.Config{
		REST: config, Name: "node-1", Namespaces: []string{namespace}, Images: images,
		Unpacker: filepath.Join(s.built.programs(), "unpack"),
	})
	if err != nil {
		return nil, err
	}
	s.group.Go(func() error { return s.node.Run(ctx) })
	s.home, err = os.MkdirTemp("", "pulsar-autoscaler-helm-")
	return s, err
}

func (s *scene) close() error {
	s.stop()
	err := s.group.Wait()
	s.Close()
	return errors.Join(err, os.RemoveAll(s.home))
}

// open starts a test on the scene. The node logs its state when the test fails.
func open(t *testing.T) *scene {
	t.Helper()
	s := theScene.Need(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.node.Explain())
		}
	})
	return s
}

// openAll is open for tests that take minutes: without -all they are skipped.
func openAll(t *testing.T) *scene {
	t.Helper()
	if !runAll() {
		t.Skip("runs with -all: make e2e-install")
	}
	return open(t)
}

// runAll returns the flag of TestMain.
func runAll() bool { return flag.Lookup("all").Value.String() == "true" }

// helm runs Helm as an administrator.
func (s *scene) helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.tryHelm(t, args...)
	require.NoError(t, err, "helm %v: %s", args, out)
	return out
}

func (s *scene) tryHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.built.helm(), append(args, "--namespace", namespace)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.Cluster.Kubeconfig(), "HOME="+s.home)
	out, err := command.CombinedOutput()
	return string(out), err
}

// install runs the command of the documentation, with the images of this test.
func (s *scene) install(t *testing.T, values ...string) string {
	t.Helper()
	return s.helm(t, append([]string{"install", release, chart(t)}, s.flags(values...)...)...)
}

func (s *scene) flags(values ...string) []string {
	flags := []string{
		"--set", "pulsar.adminURL=" + s.adminURL, "--set", "image.registry=" + registry, "--set", "image.tag=" + tag,
		"--wait", "--timeout", patience.String(),
	}
	for _, value := range values {
		flags = append(flags, "--set", value)
	}
	return flags
}

// removeRelease runs the command of the documentation.
func (s *scene) removeRelease(t *testing.T) {
	t.Helper()
	s.helm(t, "uninstall", release, "--wait", "--timeout", patience.String())
}

// uninstall returns once no pod is left: pods outlive the release by their grace period.
func (s *scene) uninstall(t *testing.T) {
	t.Helper()
	s.removeRelease(t)
	s.awaitNoPods(t)
}

// awaitNoPods returns once all pods of the release have ended.
func (s *scene) awaitNoPods(t *testing.T) {
	t.Helper()
	s.Await(t, "all pods to end", func(ctx context.Context) (bool, string, error) {
		pods, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		return len(pods.Items) == 0, fmt.Sprint(len(pods.Items), " pods"), nil
	})
}

// addFunction adds a Function with Pulsar's URL for pods.
func (s *scene) addFunction(t *testing.T, name string, serviceTime time.Duration) *stage.Function {
	t.Helper()
	return s.TestFunction(t, stage.FunctionConfig{Name: name, ServiceTime: serviceTime, AdminURL: s.adminURL})
}

// exists reads the object.
func (s *scene) exists(ctx context.Context, object client.Object) (bool, error) {
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func chart(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "deploy", "chart"))
	require.NoError(t, err)
	return path
}

// createNamespace creates a namespace in which Pod Security "restricted" is enforced.
func (s *scene) createNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// removeNamespace deletes the namespace and returns once it is gone: after 2 to 6 s, or never while an API group has no
// server.
func (s *scene) removeNamespace(t *testing.T, name string) {
	t.Helper()
	began := time.Now()
	require.NoError(t, s.client.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}))
	s.Await(t, "namespace "+name+" to be gone", func(ctx context.Context) (bool, string, error) {
		found, err := s.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", err
		}
		text := ""
		for _, c := range found.Status.Conditions {
			text += c.Message + "; "
		}
		return false, text, nil
	})
	t.Logf("namespace %s was gone after %s", name, time.Since(began).Round(time.Millisecond))
}

// requireNamespacesGo fails when a new namespace cannot be deleted.
func (s *scene) requireNamespacesGo(t *testing.T, when string) {
	t.Helper()
	name := "goes-" + when
	s.createNamespace(t, name)
	s.removeNamespace(t, name)
}
