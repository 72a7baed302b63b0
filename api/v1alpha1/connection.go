// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PulsarConnection is how the controller reaches a Pulsar cluster. Each field overrides the target's own configuration.
type PulsarConnection struct {
	// adminURL is the admin service of the cluster, http://host:port or https://host:port with no path, up to 2048 bytes,
	// such as http://pulsar-broker:8080. The adapter must allow its host (--allowed-pulsar-hosts), and sends the
	// credentials to it. Default: webServiceURL of the target's pulsarConfig, else --pulsar-admin-url of the adapter.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?/?$')",message="adminURL must be http://host:port or https://host:port, one host, with no path and no credentials"
	AdminURL string `json:"adminURL,omitempty"`
	// authSecret is the name of a Secret in the namespace of the policy with credentials for Pulsar, in the keys
	// clientAuthenticationPlugin and clientAuthenticationParameters, as in authSecret of a Function. They need consume on
	// the namespaces of the input topics. With pulsarFunctionRef they also need functions, sinks or sources, and are
	// required where the adapter has credentials of its own (--worker-credentials). Default: the credentials of the
	// target, else those of the adapter.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="authSecret must be the name of a Secret"
	AuthSecret string `json:"authSecret,omitempty"`
	// tlsConfig names the certificate authorities to trust. Default: tlsConfig or tlsSecret of the target, else
	// --pulsar-ca-file of the adapter.
	// +optional
	TLSConfig *PulsarTLSConfig `json:"tlsConfig,omitempty"`
}

// PulsarTLSConfig names the certificate authorities to trust, with the field names of a Function's tlsConfig.
type PulsarTLSConfig struct {
	// certSecretName is the name of a Secret in the namespace of the policy. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="certSecretName must be the name of a Secret"
	CertSecretName string `json:"certSecretName"`
	// certSecretKey is the key of the Secret with certificates in PEM, such as ca.crt. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="certSecretKey must be a key of a Secret"
	CertSecretKey string `json:"certSecretKey"`
}
