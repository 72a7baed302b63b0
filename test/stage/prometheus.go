// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/prometheus"
)

// metricsReader is the ClusterRole of deploy/monitoring.
const metricsReader = "pulsar-autoscaler-metrics-reader"

// StartPrometheus starts a real Prometheus that scrapes the adapter every second over HTTPS, verifies its certificate,
// and has only the permissions of deploy/monitoring. It lives until Kill or the end of ctx. Build its binaries before a
// step with a timeout.
func (s *Stage) StartPrometheus(ctx context.Context, ruleFiles ...string) (*prometheus.Server, error) {
	dir := filepath.Join(s.dir, "prometheus")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of Prometheus: %w", err)
	}
	tokenFile, err := s.grantMetrics(ctx, dir)
	if err != nil {
		return nil, err
	}
	return prometheus.Start(ctx, prometheus.Config{
		Dir: dir, RuleFiles: ruleFiles,
		Jobs: []prometheus.Job{{
			Name: "pulsar-autoscaler", Addresses: []string{strings.TrimPrefix(s.Adapter.URL, "https://")},
			ServerName: s.Adapter.TLS.ServerName, CAFile: s.Adapter.TLS.CAFile, TokenFile: tokenFile,
			Labels: map[string]string{"namespace": namespace},
		}},
		Progress: os.Stderr,
	})
}

// grantMetrics creates the ServiceAccount of Prometheus, with permission to read metrics, and the file of its token.
func (s *Stage) grantMetrics(ctx context.Context, dir string) (tokenFile string, err error) {
	const account = "prometheus"
	manifest := filepath.Join(s.sources, "deploy", "monitoring", "metricsreader.yaml")
	if err := s.Cluster.ApplyFiles(ctx, manifest); err != nil {
		return "", err
	}
	err = errors.Join(
		s.Client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: account}}),
		s.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
		}),
	)
	if err != nil {
		return "", fmt.Errorf("granting Prometheus the metrics: %w", err)
	}
	token, err := s.Cluster.ServiceAccountToken(ctx, Namespace, account)
	if err != nil {
		return "", err
	}
	tokenFile = filepath.Join(dir, "token")
	if err := os.WriteFile(tokenFile, []byte(token), 0o600); err != nil {
		return "", fmt.Errorf("writing the token of Prometheus: %w", err)
	}
	return tokenFile, nil
}
