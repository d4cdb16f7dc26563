{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 55 | trimSuffix "-" -}}
{{- else if contains "weir" .Release.Name -}}
{{- .Release.Name | trunc 55 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-weir" (.Release.Name | trunc 50 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* Names of objects without a namespace. */}}
{{- define "weir.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "weir.fullname" .) -}}
{{- end -}}

{{/* Weir's Services for Gateways select the Pods by these, too. */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "weir.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "weir.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name is missing: name the ServiceAccount, or set serviceAccount.create" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "weir.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Lease's name: as Weir makes it of the controllerName. */}}
{{- define "weir.lease" -}}
{{- printf "weir-%s" (regexReplaceAll "[^a-z0-9]" (lower .Values.controllerName) "-" | trunc 200 | trimAll "-") -}}
{{- end -}}

{{/* The controller of IngressClasses: as Weir makes it of the controllerName. */}}
{{- define "weir.ingressController" -}}
{{- if eq .Values.controllerName "weir.dev/gateway-controller" -}}
weir.dev/ingress-controller
{{- else -}}
{{- .Values.controllerName -}}
{{- end -}}
{{- end -}}

{{/* The table [kubernetes], which takes effect at the start of a Pod only. */}}
{{- define "weir.kubernetes" -}}
{{- include "weir.checkPorts" . -}}
[kubernetes]
controller = {{ .Values.controllerName | quote }}
namespace = {{ .Release.Namespace | quote }}
{{- with .Values.namespaces }}
namespaces = {{ toJson . }}
{{- end }}
pods = { "app.kubernetes.io/name" = "weir", "app.kubernetes.io/instance" = {{ .Release.Name | quote }} }
port_first = {{ int .Values.ports.first }}
port_last = {{ int .Values.ports.last }}
{{- if .Values.externalMetrics.enabled }}
external_metrics = { address = "[::]:{{ int .Values.externalMetrics.port }}", tls = { certificates = [{ chain = "/etc/weir-external-metrics/tls.crt", key = "/etc/weir-external-metrics/tls.key" }] } }
{{- end }}
{{- end -}}

{{/* Not empty if the Pods are a fleet. A number of servers is right only if all Pods add their loads. */}}
{{- define "weir.hasFleet" -}}
{{- if or .Values.fleet.enabled .Values.externalMetrics.enabled .Values.keda.enabled -}}
true
{{- end -}}
{{- end -}}

{{/* Refuses ports of the Pods that collide. */}}
{{- define "weir.checkPorts" -}}
{{- $seen := dict (toString (int .Values.metrics.port)) "metrics.port" -}}
{{- range $table := list "externalMetrics" "keda" -}}
{{- $values := get $.Values $table -}}
{{- if $values.enabled -}}
{{- $name := printf "%s.port" $table -}}
{{- $port := int $values.port -}}
{{- if and (ge $port (int $.Values.ports.first)) (le $port (int $.Values.ports.last)) -}}
{{- fail (printf "%s is %d, which is between ports.first and ports.last: choose a port outside of them" $name $port) -}}
{{- end -}}
{{- with get $seen (toString $port) -}}
{{- fail (printf "%s is %d, as %s: choose another port" $name $port .) -}}
{{- end -}}
{{- $_ := set $seen (toString $port) $name -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the fleet's key. */}}
{{- define "weir.fleetSecret" -}}
{{- .Values.fleet.secretName | default (printf "%s-fleet" (include "weir.fullname" .)) -}}
{{- end -}}

{{/* The Secret with the certificate for external metrics. */}}
{{- define "weir.externalMetricsSecret" -}}
{{- .Values.externalMetrics.certificate.secretName | default (printf "%s-external-metrics" (include "weir.fullname" .)) -}}
{{- end -}}

{{/* The tables [fleet] and [keda]; empty by default. What they say takes effect at the start of a Pod. */}}
{{- define "weir.tables" -}}
{{- if include "weir.hasFleet" . }}
[fleet]
address = "[::]:{{ int .Values.fleet.port }}"
advertise = "${POD_IP}"
host = "${NODE_NAME}"
members = ["{{ include "weir.fullname" . }}-fleet.{{ .Release.Namespace }}.svc.{{ .Values.fleet.clusterDomain }}:{{ int .Values.fleet.port }}"]
keys = ["${file:/etc/weir-fleet/key}"]
{{- end }}
{{- if .Values.keda.enabled }}

[keda]
address = "[::]:{{ int .Values.keda.port }}"
{{- if .Values.keda.tls.secretName }}
tls = { certificates = [{ chain = "/etc/weir-keda/tls.crt", key = "/etc/weir-keda/tls.key" }] }
{{- end }}
{{- end }}
{{- end -}}

{{/* What Weir reads in each namespace, and the statuses that it writes. An object is read again if a write of its status
conflicts with another one. Of Secrets and ConfigMaps, the lists have the metadata only; those that something refers to
are read. */}}
{{- define "weir.rules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, listenersets, httproutes, grpcroutes, tlsroutes, tcproutes, backendtlspolicies]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [referencegrants]
  verbs: [list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/status, listenersets/status, httproutes/status, grpcroutes/status, tlsroutes/status, tcproutes/status, backendtlspolicies/status]
  verbs: [patch]
# Weir's own policies.
- apiGroups: [weir.dev]
  resources: [servicepolicies, routepolicies]
  verbs: [get, list, watch]
- apiGroups: [weir.dev]
  resources: [servicepolicies/status, routepolicies/status]
  verbs: [patch]
{{- if .Values.podLimits.enabled }}
# The metadata of Pods that may state limits.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- end }}
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [get, list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status]
  verbs: [patch]
# What is wrong with an Ingress.
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [secrets, configmaps]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
{{- end -}}
