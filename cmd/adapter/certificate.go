// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/serving"
)

// Values of --serving-certificate.
const (
	certificateFiles    = "Files"
	certificateSelf     = "Self"
	certificateInsecure = "Insecure"
)

// CertificateOptions configure the serving certificate.
type CertificateOptions struct {
	Mode string
	// Authorities is a file, for certificateFiles.
	Authorities string
	// Secret and Lifetime are for certificateSelf.
	Secret   string
	Lifetime time.Duration
	// Owner of the APIServices is a ClusterRole.
	Owner string
}

func newCertificateOptions() CertificateOptions {
	return CertificateOptions{Mode: certificateFiles, Secret: "adapter-serving", Lifetime: 90 * 24 * time.Hour}
}

// registers reports whether the adapter writes the APIServices.
func (c CertificateOptions) registers() bool {
	return c.Mode != certificateFiles || c.Authorities != ""
}

func (o *Options) addCertificateFlags(fs *pflag.FlagSet) {
	c := &o.Certificate
	fs.StringVar(&c.Mode, "serving-certificate", c.Mode,
		"Files serves --tls-cert-file, or without it a certificate that no client can verify. Self creates an authority "+
			"and certificates, renews them, and writes the APIServices. Insecure writes APIServices that verify no "+
			"certificate: for tests.")
	fs.StringVar(&c.Authorities, "tls-ca-file", c.Authorities,
		"With Files: PEM certificates that sign --tls-cert-file, which may change. With it the adapter writes the "+
			"APIServices, which trust them; default: none, and you write them.")
	fs.StringVar(&c.Secret, "serving-certificate-secret", c.Secret,
		"With Self: Secret of authority and certificate, in the namespace of the Service.")
	fs.DurationVar(&c.Lifetime, "serving-certificate-lifetime", c.Lifetime,
		"With Self: how long a certificate is valid, from 1m to 8760h. It is renewed after two thirds of that; an "+
			"authority is valid for four times as long.")
	fs.StringVar(&c.Owner, "apiservice-owner", c.Owner,
		"ClusterRole that owns what the adapter writes, APIServices and with Self the Secret. They are deleted with it; "+
			"default: none.")
	fs.Int32Var(&o.ServicePort, "service-port", o.ServicePort,
		"Port of --service-name that the APIServices name.")
}

func (o *Options) checkCertificate() []error {
	var p flags.Problems
	c := o.Certificate
	p.OneOf("serving-certificate", c.Mode, certificateFiles, certificateSelf, certificateInsecure)
	p.Name("serving-certificate-secret", c.Secret, validation.IsDNS1123Subdomain)
	flags.Between(&p, "serving-certificate-lifetime", c.Lifetime, time.Minute, 365*24*time.Hour)
	flags.Between(&p, "service-port", o.ServicePort, 1, math.MaxUint16)
	file := o.Serving.SecureServing.ServerCert.CertKey.CertFile
	if c.Mode == certificateSelf && file != "" {
		p.Add("--serving-certificate is Self and --tls-cert-file is %q: leave one of them out", file)
	}
	if c.Authorities != "" && (c.Mode != certificateFiles || file == "") {
		p.Add("--tls-ca-file is %q, --serving-certificate is %s and --tls-cert-file is %q: it is for Files, and signs that "+
			"file", c.Authorities, c.Mode, file)
	}
	if c.Owner != "" && !c.registers() {
		p.Add("--apiservice-owner is %q: the adapter writes the APIServices with --tls-ca-file, or with "+
			"--serving-certificate=Self", c.Owner)
	}
	return p
}

// setupCertificate adds the writer of certificate and APIServices. It returns nil if the certificate is in files.
func setupCertificate(o *Options, mgr ctrl.Manager, service types.NamespacedName, ready func() error) (
	*serving.Certificate, error,
) {
	c := o.Certificate
	services := serving.APIServices{
		Service: service, Port: o.ServicePort, External: o.ExternalMetrics, Insecure: c.Mode == certificateInsecure,
		Owner: c.Owner,
	}
	switch {
	case c.Mode == certificateSelf:
		return serving.Setup(mgr, serving.Config{
			Secret: types.NamespacedName{Namespace: service.Namespace, Name: c.Secret},
			Host:   services.Host(), Lifetime: c.Lifetime, APIServices: &services, Ready: ready,
		})
	case c.registers():
		pair := o.Serving.SecureServing.ServerCert.CertKey
		files := serving.Files{Authorities: c.Authorities, Certificate: pair.CertFile, Key: pair.KeyFile}
		return nil, serving.Follow(mgr, serving.FollowConfig{APIServices: services, Files: files, Ready: ready})
	default:
		return nil, nil //nolint:nilnil // no certificate of ours is no failure
	}
}
