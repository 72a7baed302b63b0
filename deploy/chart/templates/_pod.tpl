{{/* Fields of a pod template that both programs have. Argument: dict of root, component and settings, its values. */}}
{{- define "pulsar-autoscaler.podSettings" -}}
serviceAccountName: {{ .component }}
# Above --shutdown-delay plus the 5s that a request may take.
terminationGracePeriodSeconds: 30
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
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
{{- end }}

{{/* Metadata of a pod template. Argument: as above. */}}
{{- define "pulsar-autoscaler.podMetadata" -}}
labels:
  {{- include "pulsar-autoscaler.labels" .component | nindent 2 }}
  {{- with .settings.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .settings.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Image, resources and security of a container. Argument: as above. */}}
{{- define "pulsar-autoscaler.containerSettings" -}}
{{- if and (not (get .root.Values.image.digests .component)) (eq .root.Values.image.registry "example.invalid/pulsar-autoscaler") -}}
# A placeholder that no registry has.
{{ end -}}
image: {{ include "pulsar-autoscaler.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
resources:
  # GOMEMLIMIT follows the memory limit, at 90 %.
  {{- toYaml .settings.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Flags for Pulsar, which both programs have. Argument: root. */}}
{{- define "pulsar-autoscaler.pulsarArgs" -}}
{{- $pulsar := .Values.pulsar }}
{{- with $pulsar.adminUrl }}
- --pulsar-admin-url={{ . }}
{{- end }}
{{- with $pulsar.allowedHosts }}
- --allowed-pulsar-hosts={{ join "," . }}
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
{{- end }}

{{/* Not empty where values name authorities for Pulsar. Argument: root. */}}
{{- define "pulsar-autoscaler.hasCA" -}}
{{- .Values.pulsar.ca.secretName | default .Values.pulsar.ca.configMapName }}
{{- end }}

{{/* Not empty where authParams are in a ConfigMap: they name files, and are no secret. Argument: root. */}}
{{- define "pulsar-autoscaler.hasAuthParams" -}}
{{- if has .Values.pulsar.credentials.type (list "OAuth2" "TLS") }}yes{{ end }}
{{- end }}

{{/* Mounts of what those flags name. Argument: root. */}}
{{- define "pulsar-autoscaler.pulsarMounts" -}}
{{- if ne .Values.pulsar.credentials.type "None" }}
- name: pulsar-credentials
  mountPath: /etc/pulsar-autoscaler/credentials
  readOnly: true
{{- end }}
{{- if include "pulsar-autoscaler.hasAuthParams" . }}
- name: pulsar-auth-params
  mountPath: /etc/pulsar-autoscaler/auth-params
  readOnly: true
{{- end }}
{{- if include "pulsar-autoscaler.hasCA" . }}
- name: pulsar-ca
  mountPath: /etc/pulsar-autoscaler/ca
  readOnly: true
{{- end }}
{{- end }}

{{/* The volumes of those mounts. Argument: root. */}}
{{- define "pulsar-autoscaler.pulsarVolumes" -}}
{{- $pulsar := .Values.pulsar }}
{{- if ne $pulsar.credentials.type "None" }}
- name: pulsar-credentials
  secret:
    secretName: {{ required "pulsar.credentials.secretName must name the Secret with the credentials" $pulsar.credentials.secretName }}
{{- end }}
{{- if include "pulsar-autoscaler.hasAuthParams" . }}
- name: pulsar-auth-params
  configMap:
    name: pulsar-auth-params
{{- end }}
{{- with $pulsar.ca.secretName }}
- name: pulsar-ca
  secret:
    secretName: {{ . }}
{{- else }}
{{- with $pulsar.ca.configMapName }}
- name: pulsar-ca
  configMap:
    name: {{ . }}
{{- end }}
{{- end }}
{{- end }}
