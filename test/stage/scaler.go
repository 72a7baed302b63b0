// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// Security is the security of a scaler's connections.
type Security int

// The kinds of security.
const (
	// Plain is without TLS.
	Plain Security = iota
	// TLS has a server certificate that KEDA trusts.
	TLS
	// MutualTLS also requires a client certificate, see Scaler.ClientCertificate.
	MutualTLS
)

// ScalerConfig configures a further scaler.
type ScalerConfig struct {
	Security Security
	// Flags come last and override earlier ones.
	Flags []string
}

// Scaler is KEDA's external scaler as a process with its own user, with the permissions of deploy/scaler.
type Scaler struct {
	cluster.Program

	// Address is host:port, as in the metadata of triggers.
	Address string
	// URL has /metrics and /readyz.
	URL string

	security Security
}

// applyScaler applies the manifests and sets the flags of all scalers of the stage.
func (s *Stage) applyScaler(ctx context.Context, config Config) error {
	manifests, err := filepath.Glob(filepath.Join(s.sources, "deploy", "scaler", "*.yaml"))
	if err != nil {
		return fmt.Errorf("listing manifests: %w", err)
	}
	manifests = slices.DeleteFunc(manifests, func(path string) bool {
		return slices.Contains([]string{"kustomization.yaml", "certificate.yaml", "triggerauthentication.yaml"},
			filepath.Base(path))
	})
	manifests = append(manifests, filepath.Join(s.sources, "deploy", "scaler", "secrets", "clusterrole.yaml"))
	if err := s.Cluster.ApplyFiles(ctx, manifests...); err != nil {
		return err
	}
	kubeconfig, err := s.Cluster.ServiceAccountKubeconfig(ctx, namespace, "scaler")
	if err != nil {
		return err
	}
	s.scalerFlags = append([]string{
		"--kubeconfig=" + kubeconfig, "--lease-namespace=" + namespace, "--pulsar-admin-url=" + config.AdminURL,
		"--allowed-pulsar-hosts=" + config.AdminURL, "--log-format=text", "--shutdown-delay=0s",
	}, config.ScalerFlags...)
	return nil
}

// AddScaler starts another scaler. It lives until Kill, Stop or the end of ctx.
func (s *Stage) AddScaler(ctx context.Context, name string, config ScalerConfig) (*Scaler, error) {
	port, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	return s.startScaler(ctx, name, port, config)
}

func (s *Stage) startScaler(ctx context.Context, name string, port int, config ScalerConfig) (*Scaler, error) {
	observed, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	flags := append(slices.Clone(s.scalerFlags), "--grpc-bind-address="+address(port),
		"--metrics-bind-address="+address(observed))
	if config.Security != Plain {
		cert, key, err := s.scalerCA.Issue(name, name+"."+namespace+".svc")
		if err != nil {
			return nil, err
		}
		flags = append(flags, "--tls-cert-file="+cert, "--tls-private-key-file="+key)
	}
	if config.Security == MutualTLS {
		flags = append(flags, "--client-ca-file="+s.scalerCA.CAFile())
	}
	scaler := &Scaler{Address: address(port), URL: "http://" + address(observed), security: config.Security}
	scaler.Program = cluster.Program{
		Program: proc.NewProgram(ctx, proc.Config{
			Name: name, Path: s.scalerBuilt, Args: append(flags, config.Flags...), LogPath: filepath.Join(s.dir, name+".log"),
		}),
		Ready: func(ctx context.Context) (bool, string, error) {
			return cluster.Answers(ctx, http.DefaultClient, scaler.URL+"/readyz")
		},
	}
	return scaler, scaler.Restart(ctx)
}

func address(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// ClientCertificate issues a certificate that a scaler with MutualTLS accepts; ca signed the scaler's. All are PEM.
func (s *Stage) ClientCertificate(name string) (ca, cert, key []byte, err error) {
	certFile, keyFile, err := s.scalerCA.Issue("client-"+name, name)
	if err != nil {
		return nil, nil, nil, err
	}
	for file, to := range map[string]*[]byte{s.scalerCA.CAFile(): &ca, certFile: &cert, keyFile: &key} {
		read, failed := os.ReadFile(file)
		*to, err = read, errors.Join(err, failed)
	}
	return ca, cert, key, err
}

// LogTail returns the last lines of the scaler's log.
func (a *Scaler) LogTail() string { return a.Program.LogTail(logLines) }
