// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
)

// tokenLife is longer than any test, demo or benchmark: the token in a kubeconfig file is not renewed.
const tokenLife = 24 * time.Hour

// adminConfig has no client-side rate limit: a benchmark creates a thousand objects at once.
func (c *Cluster) adminConfig() *rest.Config {
	return &rest.Config{
		Host: local("https", c.ports.apiServer),
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   []byte(c.ids.ca.PEM()),
			CertData: []byte(c.ids.admin.Certificate), KeyData: []byte(c.ids.admin.Key),
		},
		UserAgent: fieldManager,
	}
}

// RESTConfig is a copy of the configuration of an administrator (group system:masters) without a client-side rate
// limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }

// Kubeconfig is the path of a kubeconfig file of an administrator, also for kubectl.
func (c *Cluster) Kubeconfig() string { return c.kubeconfigPath("admin") }

func (c *Cluster) kubeconfigPath(name string) string {
	return filepath.Join(c.dir, "kubeconfigs", name+".kubeconfig")
}

func (c *Cluster) writeKubeconfigs() error {
	for name, pair := range map[string]identity.Pair{"admin": c.ids.admin, controllerManager: c.ids.controllerUser} {
		user := clientcmdapi.NewAuthInfo()
		user.ClientCertificateData, user.ClientKeyData = []byte(pair.Certificate), []byte(pair.Key)
		if _, err := c.writeKubeconfig(name, user, "default"); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) writeKubeconfig(name string, user *clientcmdapi.AuthInfo, namespace string) (path string, err error) {
	server := clientcmdapi.NewCluster()
	server.Server, server.CertificateAuthorityData = local("https", c.ports.apiServer), []byte(c.ids.ca.PEM())
	current := clientcmdapi.NewContext()
	current.Cluster, current.AuthInfo, current.Namespace = "local", name, namespace
	config := clientcmdapi.NewConfig()
	config.Clusters["local"], config.AuthInfos[name], config.Contexts[name] = server, user, current
	config.CurrentContext = name
	path = c.kubeconfigPath(name)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	return path, nil
}

// ServiceAccountKubeconfig writes a kubeconfig file for an existing service account, with a token for 24 h as a pod
// gets it, so that a program has only the permissions of its manifests. The namespace is the default of the file.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (path string, err error) {
	user := clientcmdapi.NewAuthInfo()
	if user.Token, err = c.ServiceAccountToken(ctx, namespace, name); err != nil {
		return "", err
	}
	return c.writeKubeconfig("serviceaccount-"+namespace+"-"+name, user, namespace)
}

// ServiceAccountToken returns a token of an existing service account for 24 h.
func (c *Cluster) ServiceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(tokenLife.Seconds())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	err := c.Client.SubResource("token").Create(ctx, account, token)
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("requesting a token: %w: apply the service account %s/%s first", err, namespace, name)
	}
	if err != nil {
		return "", fmt.Errorf("requesting a token of service account %s/%s: %w", namespace, name, err)
	}
	return token.Status.Token, nil
}

// waitControllers returns once the controllers have acted: the service account controller has handled the namespace
// default.
func (c *Cluster) waitControllers(ctx context.Context) error {
	err := WaitFor(ctx, "the controllers to serve the namespace default", readyPoll,
		func(ctx context.Context) (bool, string, error) {
			err := c.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{})
			return err == nil, "", err
		})
	if err != nil {
		return fmt.Errorf("%w\nthe last lines of %s:\n%s", err, controllerManager,
			c.ControllerManager.LogTail(logLines))
	}
	return nil
}
