{{/* Labels by which pods are selected, which never change. Argument: a component, such as "adapter". */}}
{{- define "pulsar-autoscaler.labels" -}}
app.kubernetes.io/name: pulsar-autoscaler
app.kubernetes.io/component: {{ . }}
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
metadata:
  name: {{ .role }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .role }}
{{ include "pulsar-autoscaler.subjects" . }}
{{- end }}

{{/* A RoleBinding of a Role of the release's namespace. Argument: dict of root, component and role. */}}
{{- define "pulsar-autoscaler.roleBinding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .role }}
  namespace: {{ .root.Release.Namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .role }}
{{ include "pulsar-autoscaler.subjects" . }}
{{- end }}

{{/* The right to read the Secrets that Functions and policies name. Argument: dict of root, component and role. */}}
{{- define "pulsar-autoscaler.secrets" -}}
{{- $secrets := .root.Values.rbac.secrets -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .role }}
rules:
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- if $secrets.allNamespaces }}
---
{{ include "pulsar-autoscaler.clusterRoleBinding" . }}
{{- else }}
{{- range $secrets.namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $.role }}
  namespace: {{ . }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $.role }}
{{ include "pulsar-autoscaler.subjects" $ }}
{{- end }}
{{- end }}
{{- end }}
