{{/*
A ValidatingAdmissionPolicy for policies and the templates of sets, and its binding. The adapter is excepted: it writes
policies of sets, which were checked themselves, and finalizers.
Argument: dict of root, name and validations, a list of dict of expression and message or messageExpression.
*/}}
{{- define "pulsar-autoscaler.admissionPolicy" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
{{ include "pulsar-autoscaler.metadata" (dict "root" .root "component" "adapter" "name" (printf "pulsar-autoscaler-%s" .name)) }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [pulsar-autoscaler.io]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [autoscalingpolicies, autoscalingpolicysets]
  matchConditions:
  - name: not-the-adapter
    expression: request.userInfo.username != 'system:serviceaccount:{{ .root.Release.Namespace }}:adapter'
  # Labels, annotations and finalizers of what was allowed may change.
  - name: spec-changes
    expression: oldObject == null || object.spec != oldObject.spec
  variables:
  - name: spec
    expression: "has(object.spec.template) ? object.spec.template.spec : object.spec"
  validations:
  {{- range .validations }}
  - expression: {{ .expression | quote }}
    {{- if .message }}
    message: {{ .message | quote }}
    {{- else }}
    messageExpression: {{ .messageExpression | quote }}
    {{- end }}
    reason: Forbidden
  {{- end }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
{{ include "pulsar-autoscaler.metadata" (dict "root" .root "component" "adapter" "name" (printf "pulsar-autoscaler-%s" .name)) }}
spec:
  policyName: pulsar-autoscaler-{{ .name }}
  validationActions: [Deny]
{{- end }}

{{/* CEL that is true for members of groups. Argument: a list of groups. */}}
{{- define "pulsar-autoscaler.isMember" -}}
request.userInfo.groups.exists(g, g in {{ toJson . | replace "\"" "'" }})
{{- end }}
