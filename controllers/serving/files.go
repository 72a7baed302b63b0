// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const filesInterval = 10 * time.Second

// Files are PEM files of a certificate that another program renews.
type Files struct {
	// Authorities sign the Certificate; Key is its key.
	Authorities, Certificate, Key string
}

// read returns the files as a Secret's data. It fails if the authorities do not sign the certificate: an API group with
// an untrusted server blocks the deletion of every namespace.
func (f Files) read(now time.Time, host string) (map[string][]byte, error) {
	data := map[string][]byte{}
	for key, file := range map[string]string{
		keyAuthorities: f.Authorities, keyCertificate: f.Certificate, keyPrivateKey: f.Key,
	} {
		var err error
		if data[key], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	if _, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivateKey]); err != nil {
		return nil, fmt.Errorf("reading %s and %s: %w", f.Certificate, f.Key, err)
	}
	c := decode(data)
	if len(c.authorities) == 0 {
		return nil, fmt.Errorf("%s has no certificate in PEM: write the authorities of %s into it", f.Authorities,
			f.Certificate)
	}
	if err := c.verify(now, host); err != nil {
		return nil, fmt.Errorf("%s does not verify %s for %s: %w", f.Authorities, f.Certificate, host, err)
	}
	return data, nil
}

// FollowConfig configures Follow.
type FollowConfig struct {
	APIServices APIServices
	// Files are ignored with APIServices.Insecure.
	Files Files
	// Ready returns why this replica cannot serve requests yet; nil if it can.
	Ready func() error
}

type follower struct {
	config  FollowConfig
	clients publisher
}

// Follow adds the writer of the APIServices for a certificate in files, or for one that is not verified.
func Follow(mgr manager.Manager, config FollowConfig) error {
	if config.Ready == nil {
		return errors.New("serving: Ready must be set")
	}
	if err := config.APIServices.check(); err != nil {
		return err
	}
	direct, err := newClient(mgr)
	if err != nil {
		return err
	}
	if err := mgr.Add(&follower{config: config, clients: newRegistrar(config.APIServices, direct)}); err != nil {
		return fmt.Errorf("adding the writer of the APIServices: %w", err)
	}
	return nil
}

// NeedLeaderElection is true: one replica writes.
func (f *follower) NeedLeaderElection() bool { return true }

// Start follows the files until the context ends.
func (f *follower) Start(ctx context.Context) error {
	if f.config.APIServices.Insecure {
		log.FromContext(ctx).WithName("serving").Info("the API server does not verify the adapter's certificate: it " +
			"accepts metrics from any server at the address of its Service; choose another --serving-certificate (value " +
			"servingCertificate.mode of the chart) for production")
	}
	repeat(ctx, "updating the APIServices", nil, func(ctx context.Context, logger logr.Logger) (time.Duration, error) {
		if f.config.Ready() != nil {
			return retryInterval, nil //nolint:nilerr // not ready yet
		}
		return filesInterval, f.publish(ctx, logger, time.Now())
	})
	return nil
}

func (f *follower) publish(ctx context.Context, logger logr.Logger, now time.Time) error {
	if f.config.APIServices.Insecure {
		return f.clients.publish(ctx, logger, nil)
	}
	data, err := f.config.Files.read(now, f.config.APIServices.Host())
	if err != nil {
		return err
	}
	return f.clients.publish(ctx, logger, data)
}
