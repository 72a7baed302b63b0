// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PulsarConnection says how to reach a Pulsar cluster. What it says wins over the target's own; what it does not say,
// the target says.
type PulsarConnection struct {
	// adminURL is the cluster's admin service, such as http://pulsar-broker:8080. Its host must be among those that the
	// administrator of the adapter allows (--allowed-pulsar-hosts); it is shown the target's credentials. Default: the
	// webServiceURL of the target's own pulsarConfig.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?/?$')",message="adminURL must be http://host:port or https://host:port, one host, with no path and no credentials"
	AdminURL string `json:"adminURL,omitempty"`
	// authSecret is the name of a Secret in the policy's namespace with the credentials to show to Pulsar: keys
	// clientAuthenticationPlugin and clientAuthenticationParameters, as in a target's own authSecret. With
	// pulsarFunctionRef they also change the parallelism, and are required where the adapter has credentials of its own
	// (--worker-credentials). Default: the target's own credentials, else the adapter's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="authSecret must be the name of a Secret"
	AuthSecret string `json:"authSecret,omitempty"`
	// tlsConfig names the certificates that sign the brokers'. Default: the target's own tlsConfig or tlsSecret.
	// +optional
	TLSConfig *PulsarTLSConfig `json:"tlsConfig,omitempty"`
}

// PulsarTLSConfig names certificates to trust, in the words of a target's own tlsConfig.
type PulsarTLSConfig struct {
	// certSecretName is the name of a Secret in the policy's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="certSecretName must be the name of a Secret"
	CertSecretName string `json:"certSecretName"`
	// certSecretKey is the key of it that has PEM certificates, such as ca.crt.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="certSecretKey must be a key of a Secret"
	CertSecretKey string `json:"certSecretKey"`
}
