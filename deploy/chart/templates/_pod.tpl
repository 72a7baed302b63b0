{{/* Fields of a pod template that both programs have. Argument: dict of root, component and settings, its values. */}}
{{- define "pulsar-autoscaler.podSettings" -}}
serviceAccountName: {{ .component }}
# Above --shutdown-delay plus the 5s that a request may take.
terminationGracePeriodSeconds: 30
{{- with .settings.hostNetwork }}
hostNetwork: true
{{- end }}
{{- with .settings.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" .settings.hostNetwork) }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .settings.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .settings.podSecurityContext | nindent 2 }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: {{ .settings.topologySpread.topologyKey }}
  whenUnsatisfiable: {{ .settings.topologySpread.whenUnsatisfiable }}
  labelSelector:
    matchLabels:
      {{- include "pulsar-autoscaler.labels" .component | nindent 6 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- with .settings.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .settings.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- with .settings.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $files := include "pulsar-autoscaler.files" . | fromYamlArray }}
{{- if or $files .settings.extraVolumes }}
volumes:
{{- range $files }}
- name: {{ .name }}
  {{- toYaml .source | nindent 2 }}
{{- end }}
{{- with .settings.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Metadata of a pod template. Argument: as above. */}}
{{- define "pulsar-autoscaler.podMetadata" -}}
labels:
  {{- include "pulsar-autoscaler.labels" .component | nindent 2 }}
  {{- with merge (dict) .settings.podLabels .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .settings.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Image, resources, security, environment and files of a container. Argument: as above. */}}
{{- define "pulsar-autoscaler.containerSettings" -}}
{{- $image := .root.Values.image }}
{{- if eq $image.registry "example.invalid/pulsar-autoscaler" }}
{{- if ne $image.tag "VERSION" }}
{{- fail "image.registry is a placeholder: run `make push REGISTRY=<registry>` and add `--values dist/images.yaml`" }}
{{- end -}}
# A placeholder that no registry has.
{{ end -}}
image: {{ include "pulsar-autoscaler.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
resources:
  # GOMEMLIMIT follows the memory limit, at 90 %.
  {{- toYaml .settings.resources | nindent 2 }}
securityContext:
  {{- toYaml .settings.securityContext | nindent 2 }}
{{- with .settings.env }}
env:
{{ toYaml . }}
{{- end }}
{{- $files := include "pulsar-autoscaler.files" . | fromYamlArray }}
{{- if or $files .settings.extraVolumeMounts }}
volumeMounts:
{{- range $files }}
- name: {{ .name }}
  mountPath: {{ .mountPath }}
  readOnly: true
{{- end }}
{{- with .settings.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fields of a Deployment that both programs have. Argument: as above. */}}
{{- define "pulsar-autoscaler.deploymentSettings" -}}
replicas: {{ .settings.replicas }}
selector:
  matchLabels:
    {{- include "pulsar-autoscaler.labels" .component | nindent 4 }}
strategy:
  {{- $strategy := .settings.strategy | default dict }}
  {{- if and .settings.hostNetwork (eq (toJson $strategy.rollingUpdate) `{"maxSurge":1,"maxUnavailable":0}`) }}
  {{- /* One more pod would need a node on which the port is free. */}}
  {{- $strategy = dict "rollingUpdate" (dict "maxSurge" 0 "maxUnavailable" 1) }}
  {{- end }}
  {{- toYaml $strategy | nindent 2 }}
{{- end }}

{{/* Flags that both programs have. Argument: root. */}}
{{- define "pulsar-autoscaler.commonArgs" -}}
{{- $pulsar := .Values.pulsar }}
{{- with $pulsar.adminURL }}
- --pulsar-admin-url={{ . }}
{{- end }}
{{- with include "pulsar-autoscaler.allowedHosts" . }}
- --allowed-pulsar-hosts={{ . }}
{{- end }}
{{- with $pulsar.allowedOAuth2Issuers }}
- --allowed-oauth2-issuers={{ join "," . }}
{{- end }}
{{- with $pulsar.maxTopicsPerSubscription }}
- --max-topics-per-subscription={{ int . }}
{{- end }}
{{- with $pulsar.maxTopicsPerNamespace }}
- --max-topics-per-namespace={{ int . }}
{{- end }}
{{- $type := $pulsar.credentials.type }}
{{- if eq $type "Token" }}
- --pulsar-token-file=/etc/pulsar-autoscaler/credentials/token
{{- else if eq $type "Basic" }}
- --pulsar-auth-plugin=basic
- --pulsar-auth-params-file=/etc/pulsar-autoscaler/credentials/basic
{{- else if ne $type "None" }}
- --pulsar-auth-plugin={{ lower $type }}
- --pulsar-auth-params-file=/etc/pulsar-autoscaler/auth-params/params
{{- end }}
{{- if include "pulsar-autoscaler.hasCA" . }}
- --pulsar-ca-file=/etc/pulsar-autoscaler/ca/{{ $pulsar.ca.key }}
{{- end }}
{{- if not .Values.rbac.pods }}
- --instance-metrics=Off
{{- end }}
{{- with .Values.watchNamespaces }}
- --watch-namespaces={{ join "," . }}
{{- end }}
{{- end }}

{{/* Hosts of --allowed-pulsar-hosts. Those that policies may name are for Functions too. Argument: root. */}}
{{- define "pulsar-autoscaler.allowedHosts" -}}
{{- $hosts := .Values.pulsar.allowedHosts }}
{{- with .Values.admissionPolicies.hosts }}
{{- if .enabled }}
{{- range .urls }}{{ $hosts = append $hosts (trimSuffix "/" .) }}{{ end }}
{{- end }}
{{- end }}
{{- join "," (uniq $hosts) }}
{{- end }}

{{/* Not empty where values name authorities for Pulsar. Argument: root. */}}
{{- define "pulsar-autoscaler.hasCA" -}}
{{- .Values.pulsar.ca.secretName | default .Values.pulsar.ca.configMapName }}
{{- end }}

{{/* Not empty where authParams are in a ConfigMap: they name files, and are no secret. Argument: root. */}}
{{- define "pulsar-autoscaler.hasAuthParams" -}}
{{- if has .Values.pulsar.credentials.type (list "OAuth2" "TLS") }}yes{{ end }}
{{- end }}

{{/* Read-only files of a container: name, mountPath and source of each volume. Argument: as above. */}}
{{- define "pulsar-autoscaler.files" -}}
{{- $pulsar := .root.Values.pulsar }}
{{- if ne $pulsar.credentials.type "None" }}
- name: pulsar-credentials
  mountPath: /etc/pulsar-autoscaler/credentials
  source:
    secret:
      secretName: {{ required "pulsar.credentials.secretName must name the Secret with the credentials" $pulsar.credentials.secretName }}
{{- end }}
{{- if include "pulsar-autoscaler.hasAuthParams" .root }}
- name: pulsar-auth-params
  mountPath: /etc/pulsar-autoscaler/auth-params
  source:
    configMap:
      name: pulsar-auth-params
{{- end }}
{{- with $pulsar.ca.secretName }}
- name: pulsar-ca
  mountPath: /etc/pulsar-autoscaler/ca
  source:
    secret:
      secretName: {{ . }}
{{- else }}
{{- with $pulsar.ca.configMapName }}
- name: pulsar-ca
  mountPath: /etc/pulsar-autoscaler/ca
  source:
    configMap:
      name: {{ . }}
{{- end }}
{{- end }}
{{- include (printf "pulsar-autoscaler.%sFiles" .component) .root }}
{{- end }}

{{/* Files of the scaler alone. Argument: root. */}}
{{- define "pulsar-autoscaler.scalerFiles" -}}
{{- with .Values.scaler.connections.secretName }}
- name: connections
  mountPath: /etc/scaler/connections
  source:
    secret:
      secretName: {{ . }}
{{- end }}
{{- if eq .Values.scaler.tls.mode "Secret" }}
- name: serving-cert
  mountPath: /etc/scaler/serving-cert
  source:
    secret:
      secretName: {{ .Values.scaler.tls.secretName }}
{{- end }}
{{- end }}
