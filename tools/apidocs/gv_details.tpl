{{- define "gvDetails" -}}
{{- $gv := . -}}
{{- range .SortedKinds }}
## {{ . }}

`apiVersion: {{ $gv.GroupVersionString }}`
{{ template "type" $gv.TypeForKind . }}
{{- end }}
## Types
{{ range .SortedTypes }}
{{- if and (not .GVK) (markdownShouldRenderType .) }}
### {{ .Name }}
{{ template "type" . }}
{{- end }}
{{- end }}
{{- end -}}
