// Pins the operators whose kinds the chart creates. No package is imported: only their CustomResourceDefinitions are
// read, so "go mod tidy" is not for this module.
module github.com/pulsar-autoscaler/pulsar-autoscaler/test/chart/operators

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
