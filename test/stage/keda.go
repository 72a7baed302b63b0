// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// prepareKEDA builds what is missing and returns KEDA's definitions.
func (s *Stage) prepareKEDA(ctx context.Context, config Config) (crds []string, err error) {
	built, err := binaries.BuildKEDA(ctx, cmp.Or(config.KEDA.Progress, config.Progress))
	if err != nil {
		return nil, err
	}
	if s.scalerPort, err = proc.FreePort(); err != nil {
		return nil, err
	}
	s.scalerBuilt = filepath.Join(s.dir, "scaler")
	return built.CRDs, Build(ctx, "./cmd/scaler", s.scalerBuilt)
}

// startKEDA starts a scaler without TLS, with an address that the adapter knows, and KEDA, which trusts the
// certificates of scalers.
func (s *Stage) startKEDA(ctx context.Context, config Config) (err error) {
	if s.scalerCA, err = s.Cluster.NewAuthority("scaler"); err != nil {
		return err
	}
	if err := s.applyScaler(ctx, config); err != nil {
		return err
	}
	if s.Scaler, err = s.startScaler(ctx, "scaler", s.scalerPort, ScalerConfig{}); err != nil {
		return err
	}
	own := *config.KEDA
	own.OperatorFlags = append([]string{"--ca-dir=" + s.scalerCA.Dir()}, own.OperatorFlags...)
	s.KEDA, err = keda.Start(ctx, s.Cluster, own)
	return err
}
