{{/* Labels by which pods are selected, which never change. Argument: a component, such as "adapter". */}}
{{- define "pulsar-autoscaler.labels" -}}
app.kubernetes.io/name: pulsar-autoscaler
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* Metadata of an object. Argument: dict of root, component and name, and namespace if it has one. */}}
{{- define "pulsar-autoscaler.metadata" -}}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "pulsar-autoscaler.labels" .component | nindent 4 }}
    {{- with .root.Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* The image of a component. Argument: dict of root and component. */}}
{{- define "pulsar-autoscaler.image" -}}
{{- $image := .root.Values.image }}
{{- $digest := get $image.digests .component }}
{{- printf "%s/%s" $image.registry .component }}
{{- if $digest }}@{{ $digest }}{{ else }}:{{ $image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* A binding's subject. Argument: dict of root and component. */}}
{{- define "pulsar-autoscaler.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ .component }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/* A ClusterRoleBinding of a ClusterRole. Argument: dict of root, component and role. */}}
{{- define "pulsar-autoscaler.clusterRoleBinding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
{{ include "pulsar-autoscaler.metadata" (dict "root" .root "component" .component "name" .role) }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .role }}
{{ include "pulsar-autoscaler.subjects" . }}
{{- end }}

{{/*
A RoleBinding of a Role. Argument: dict of root, component and role; namespace if it is not the release's, and kind
ClusterRole for one of these.
*/}}
{{- define "pulsar-autoscaler.roleBinding" -}}
{{- $namespace := .namespace | default .root.Release.Namespace -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
{{ include "pulsar-autoscaler.metadata" (dict "root" .root "component" .component "name" .role "namespace" $namespace) }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind | default "Role" }}
  name: {{ .role }}
{{ include "pulsar-autoscaler.subjects" . }}
{{- end }}

{{/* RoleBindings of a ClusterRole in namespaces. Argument: dict of root, component, role and namespaces. */}}
{{- define "pulsar-autoscaler.roleBindings" -}}
{{- range $i, $namespace := .namespaces }}
{{- if $i }}
---
{{ end }}
{{- include "pulsar-autoscaler.roleBinding" (dict "root" $.root "component" $.component "role" $.role "kind" "ClusterRole" "namespace" $namespace) }}
{{- end }}
{{- end }}

{{/*
Bindings of a ClusterRole where the programs work: in watchNamespaces, or in the whole cluster. Argument: dict of root,
component and role.
*/}}
{{- define "pulsar-autoscaler.bindings" -}}
{{- with .root.Values.watchNamespaces }}
{{- include "pulsar-autoscaler.roleBindings" (dict "root" $.root "component" $.component "role" $.role "namespaces" .) }}
{{- else }}
{{- include "pulsar-autoscaler.clusterRoleBinding" . }}
{{- end }}
{{- end }}

{{/* The right to read the Secrets that Functions and policies name. Argument: dict of root, component and role. */}}
{{- define "pulsar-autoscaler.secrets" -}}
{{- $secrets := .root.Values.rbac.secrets -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
{{ include "pulsar-autoscaler.metadata" (dict "root" .root "component" .component "name" .role) }}
rules:
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
---
{{ if $secrets.allNamespaces }}
{{- include "pulsar-autoscaler.bindings" . }}
{{- else }}
{{- include "pulsar-autoscaler.roleBindings" (dict "root" .root "component" .component "role" .role "namespaces" $secrets.namespaces) }}
{{- end }}
{{- end }}
