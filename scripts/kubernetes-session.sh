# What checks of Weir in a fresh test cluster (interop/kubernetes) have in common; scripts/kubernetes-policies and
# scripts/kubernetes-autoscale source it. It reads the options --weir and --state, and sets `weir`, `state`, `helm` and
# `programs`. `start_cluster` starts the cluster, which ends with the script.
#
# A caller may add processes to `background`, which are ended, too.

here=$(cd "$(dirname "$0")" && pwd)
check=$(basename "$0")

# fail CODE TEXT
fail() {
  echo "$check: $2" >&2
  exit "$1"
}
say() { echo "$check: $1"; }

state= weir= temporary= cluster= background=
while [ $# -gt 0 ]; do
  case $1 in
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --weir | --state) [ $# -ge 2 ] || fail 2 "$1 needs a value; --help describes the options" ;;
    *) fail 2 "unknown option $1; --help describes the options" ;;
  esac
  case $1 in
    --weir) weir=$2 ;;
    --state) state=$2 ;;
  esac
  shift 2
done
[ -x "$weir" ] || fail 2 "--weir is missing, or it is not a program; build Weir first"
weir=$(realpath "$weir")

helm=$("$here/install-helm")/helm || exit 3
programs=$("$here/install-kubernetes") || exit 3
if [ -z "$state" ]; then
  state=$(mktemp -d)
  temporary=$state
fi
ready=$(mktemp)
finish() {
  local code=$? process
  trap '' TERM INT
  for process in $background $cluster; do
    kill -TERM "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  rm -f "$ready" "$ready.head"
  if [ -n "$temporary" ] && [ $code = 0 ]; then
    rm -rf "$temporary"
  else
    echo "$check: the logs are in $state" >&2
  fi
  exit $code
}
trap finish EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# start_cluster OPTION...: starts it, with options of scripts/kubernetes-cluster. It stops if this script is killed.
start_cluster() {
  setpriv --pdeathsig TERM "$here/kubernetes-cluster" --state "$state" --image "weir=$weir" "$@" >"$ready" &
  cluster=$!
  until grep -q '^namespace=' "$ready"; do
    if ! kill -0 "$cluster" 2>/dev/null; then
      cluster=
      fail 3 "the cluster could not be started; the end of a log is above"
    fi
    sleep 0.2
  done
  kubeconfig=$(sed -n 's/^kubeconfig=//p' "$ready")
  namespace=$(sed -n 's/^namespace=//p' "$ready")
  server=https://10.244.0.1:6443
  admin=$(sed -n 's/.*token: \([0-9a-f]*\)}.*/\1/p' "$kubeconfig")
  authority=$(sed -n "s/.*certificate-authority: '\(.*\)'}}.*/\1/p" "$kubeconfig")
}
inside() { ip netns exec "$namespace" setpriv --pdeathsig KILL "$@"; }
kubernetes() { inside env KUBECONFIG="$kubeconfig" "$programs/weir-kubernetes" "$@"; }

# request OPTION...: sends a request, and sets `code`, `body`, and `head`, the fields of the response.
request() {
  local answer
  : >"$ready.head"
  answer=$(inside curl --silent --show-error --max-time 20 --dump-header "$ready.head" --write-out '\n%{http_code}' "$@") ||
    true
  code=${answer##*$'\n'} body=${answer%$'\n'*}
  head=$(tr -d '\r' <"$ready.head")
}
api() { request --cacert "$authority" "$@"; }
as_admin() { api --header "Authorization: Bearer $admin" "$@"; }

# expect CODE WHAT [TEXT]: checks `code`, and that `body` contains a text.
expect() {
  [ "$code" = "$1" ] || fail 1 "$2: the answer is $code instead of $1: $body"
  [[ $body == *"${3:-}"* ]] || fail 1 "$2: the answer has no \"$3\": $body"
}
# within SECONDS WHAT COMMAND...: repeats a command until it succeeds.
within() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $end ] || fail 1 "not within the time: $what; the last answer: ${code:-} ${body:-}"
    sleep 0.5
  done
}
