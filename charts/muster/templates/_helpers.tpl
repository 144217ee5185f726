{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Kubernetes wants text, also where `--set` or YAML took it for a number, or for yes or no. */}}
{{- define "muster.text" -}}
{{- if kindIs "string" . }}{{ . | quote }}{{ else }}{{ . | toJson | quote }}{{ end }}
{{- end }}

{{- define "muster.texts" -}}
{{- range $name, $value := . }}
{{ $name }}: {{ include "muster.text" $value }}
{{- end }}
{{- end }}

{{/* Whether the server has admission policies that refuse, and those that change. */}}
{{- define "muster.validates" -}}
{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" }}yes{{ end }}
{{- end }}
{{- define "muster.mutates" -}}
{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}yes{{ end }}
{{- end }}

{{/* CEL: whether a request is Muster's own, or of a user that the administrator trusts like it. */}}
{{- define "muster.isMuster" -}}
request.userInfo.username in {{ concat (list (printf "system:serviceaccount:%s:muster" .Release.Namespace)) .Values.admission.exemptUsers | toJson }}
{{- end }}

{{/* CEL: whether a controller makes the request for an object that a person wrote before: Kubernetes' own controllers, and
operators. Their service accounts live in another namespace than the work; those of tenants live beside it. */}}
{{- define "muster.isController" -}}
request.userInfo.username == 'system:kube-controller-manager' || (request.userInfo.username.startsWith('system:serviceaccount:') && !request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':'))
{{- end }}

{{/* Annotations and labels by which Muster knows what it has done. */}}
{{- define "muster.marks" -}}
{{- list "assigned-node" "claim" "claims" "groups" "idle-since" "node-selector-added" "offering" "order" "placement" "pool" "released" "source" | toJson }}
{{- end }}

{{/* Arguments that follow from other values, and those that were given. */}}
{{- define "muster.args" -}}
{{- range $name, $on := .Values.features }}
{{- if not $on }}
- --disable={{ $name }}
{{- end }}
{{- end }}
{{- if and .Values.admission.protectMarks (include "muster.validates" .) }}
- --trust-user-annotation
{{- end }}
{{- range .Values.args }}
- {{ include "muster.text" . }}
{{- end }}
{{- end }}
