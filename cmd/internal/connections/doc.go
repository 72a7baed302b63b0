// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package connections reads the file in which an administrator names Pulsar clusters, with addresses, credentials and
// the namespaces that may use them, for the triggers of ScaledObjects, which have no credentials.
//
// Layer 3, part of the programs. It reads files at use, and never calls Pulsar or Kubernetes.
//
//	connections:
//	- name: east                              a trigger has connection: east
//	  adminURL: https://pulsar.east:8443      of the brokers
//	  workerURL: http://worker.east:6750      of a function worker that runs separately
//	  tokenFile: /etc/east/token              or authPlugin and authParamsFile, as in Pulsar's client.conf; read at use
//	  caFile: /etc/east/ca.crt                PEM certificates that sign the brokers'; without it the system's
//	  allowInsecureConnection: false          true accepts any certificate of the brokers
//	  tlsHostnameVerification: true           false accepts any name in it
//	  namespaces: [media]                     of the ScaledObjects that may use it; without it all
//
// The file may change. An invalid version is logged once and changes nothing.
package connections
