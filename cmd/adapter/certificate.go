// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/server/healthz"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/serving"
)

// Values of --serving-certificate.
const (
	certificateFiles = "Files"
	certificateSelf  = "Self"
)

// CertificateOptions are how clients come to trust the adapter.
type CertificateOptions struct {
	// Mode is certificateFiles or certificateSelf. All other fields are for the latter.
	Mode   string
	Secret string
	// Owner is a ClusterRole.
	Owner    string
	Lifetime time.Duration
}

func newCertificateOptions() CertificateOptions {
	return CertificateOptions{Mode: certificateFiles, Secret: "adapter-serving", Lifetime: 90 * 24 * time.Hour}
}

func (o *Options) addCertificateFlags(fs *pflag.FlagSet) {
	c := &o.Certificate
	fs.StringVar(&c.Mode, "serving-certificate", c.Mode,
		"Files serves --tls-cert-file, or without it a certificate that no client can verify. Self creates an authority "+
			"and certificates, renews them, and writes the APIServices.")
	fs.StringVar(&c.Secret, "serving-certificate-secret", c.Secret,
		"With Self: Secret of authority and certificate, in the namespace of the Service.")
	fs.DurationVar(&c.Lifetime, "serving-certificate-lifetime", c.Lifetime,
		"With Self: how long a certificate is valid, from 1m to 8760h. It is renewed after two thirds of that; an "+
			"authority is valid for four times as long.")
	fs.StringVar(&c.Owner, "apiservice-owner", c.Owner,
		"With Self: ClusterRole whose deletion deletes the APIServices too; default: none.")
	fs.Int32Var(&o.ServicePort, "service-port", o.ServicePort,
		"With Self: port of --service-name that the APIServices name.")
}

func (o *Options) checkCertificate() []error {
	var p flags.Problems
	c := o.Certificate
	p.OneOf("serving-certificate", c.Mode, certificateFiles, certificateSelf)
	p.Name("serving-certificate-secret", c.Secret, validation.IsDNS1123Subdomain)
	p.Between("serving-certificate-lifetime", c.Lifetime, time.Minute, 365*24*time.Hour)
	if o.ServicePort < 1 || o.ServicePort > math.MaxUint16 {
		p.Add("--service-port is %d: it must be from 1 to 65535", o.ServicePort)
	}
	file := o.Serving.SecureServing.ServerCert.CertKey.CertFile
	if c.Mode == certificateSelf && file != "" {
		p.Add("--serving-certificate is Self and --tls-cert-file is %q: leave one of them out", file)
	}
	if c.Mode == certificateFiles && c.Owner != "" {
		p.Add("--apiservice-owner is %q: it is for --serving-certificate=Self, which writes the APIServices", c.Owner)
	}
	return p
}

// setupCertificate returns nil where the certificate is in files.
func setupCertificate(o *Options, mgr ctrl.Manager, service types.NamespacedName, ready []healthz.HealthChecker) (
	*serving.Certificate, error,
) {
	if o.Certificate.Mode == certificateFiles {
		return nil, nil //nolint:nilnil // no certificate of ours is no failure
	}
	return serving.Setup(mgr, serving.Config{
		Secret:  types.NamespacedName{Namespace: service.Namespace, Name: o.Certificate.Secret},
		Service: service, Port: o.ServicePort, External: o.ExternalMetrics, Owner: o.Certificate.Owner,
		Lifetime: o.Certificate.Lifetime,
		Ready: func() error {
			for _, check := range ready {
				if err := check.Check(nil); err != nil {
					return err
				}
			}
			return nil
		},
	})
}
