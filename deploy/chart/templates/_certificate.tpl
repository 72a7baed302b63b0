{{/* Flags for the serving certificate of the adapter. Argument: root. */}}
{{- define "pulsar-autoscaler.certificateArgs" -}}
{{- $mode := .Values.servingCertificate.mode }}
{{- if eq $mode "Self" -}}
- --serving-certificate=Self
- --serving-certificate-lifetime={{ .Values.servingCertificate.lifetime }}
{{- else if eq $mode "Insecure" -}}
- --serving-certificate=Insecure
{{- else -}}
- --tls-cert-file=/etc/adapter/serving-cert/tls.crt
- --tls-private-key-file=/etc/adapter/serving-cert/tls.key
- --tls-ca-file=/etc/adapter/serving-cert/ca.crt
{{- end }}
# Kubernetes deletes the APIServices with this ClusterRole.
- --apiservice-owner=pulsar-autoscaler-adapter-apiservices
{{- end }}

{{/* Not empty where the serving certificate is mounted. Argument: root. */}}
{{- define "pulsar-autoscaler.certificateSecret" -}}
{{- if has .Values.servingCertificate.mode (list "CertManager" "Secret") }}{{ .Values.servingCertificate.secretName }}{{ end }}
{{- end }}

{{/* Files of the adapter alone. Argument: root. */}}
{{- define "pulsar-autoscaler.adapterFiles" -}}
{{- with include "pulsar-autoscaler.certificateSecret" . }}
- name: serving-cert
  mountPath: /etc/adapter/serving-cert
  source:
    secret:
      secretName: {{ . }}
{{- end }}
{{- end }}
