{{/* Flags for the serving certificate of the adapter. Argument: root. */}}
{{- define "pulsar-autoscaler.certificateArgs" -}}
- --serving-certificate={{ .Values.servingCertificate.mode }}
- --serving-certificate-lifetime={{ .Values.servingCertificate.lifetime }}
# With this ClusterRole Kubernetes deletes the APIServices.
- --apiservice-owner=pulsar-autoscaler-adapter-apiservices
{{- end }}
