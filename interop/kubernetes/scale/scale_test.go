package scale

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	var times []time.Duration
	for i := range 100 {
		times = append(times, time.Duration(100-i)*time.Millisecond)
	}
	require.Equal(t, summary{Count: 100, P50: 50, P90: 90, P99: 99, Max: 100}, summarize(times))
	require.Equal(t, summary{Count: 1, P50: 7, P90: 7, P99: 7, Max: 7}, summarize([]time.Duration{7 * time.Millisecond}))
	require.Equal(t, summary{}, summarize(nil))
	require.Equal(t, time.Duration(2), percentile([]time.Duration{1, 2, 3}, 50))
}

func TestResponsesAreComparedWithWhatIsWanted(t *testing.T) {
	for _, test := range []struct {
		want  want
		given response
		right bool
	}{
		{want{200, 'a'}, response{status: 200, backend: 'a'}, true},
		{want{200, 'a'}, response{status: 200, backend: 'b'}, false},
		{want{200, 'a'}, response{status: 200}, false},
		{want{200, 'a'}, response{status: 503}, false},
		{notFound, response{status: 404}, true},
		{notFound, response{status: 404, backend: 'a'}, true},
		{notFound, response{status: 200, backend: 'a'}, false},
	} {
		require.Equal(t, test.right, test.want.met(test.given), "%v %v", test.want, test.given)
	}
}

func TestChangesKnowTheResponsesBeforeAndAfter(t *testing.T) {
	r := newRoute("r1", 3)
	for _, test := range []struct {
		kind          kind
		before, after want
		path          string
	}{
		{create, notFound, want{200, 'a'}, "/v0"},
		{switchBackend, want{200, 'a'}, want{200, 'b'}, "/v0"},
		{switchPath, notFound, want{200, 'b'}, "/v1"},
		{switchBackend, want{200, 'b'}, want{200, 'a'}, "/v1"},
		{remove, want{200, 'a'}, notFound, "/v1"},
	} {
		c := newChange(test.kind, r, 2)
		require.Equal(t, test.before, c.before)
		require.Equal(t, test.after, c.after)
		require.Equal(t, "GET "+test.path+" HTTP/1.1\r\nHost: r1.example\r\n\r\n", string(c.request))
		require.Contains(t, string(r.patch()), `"value":"`+test.path+`"`)
	}
}

func TestEffectIsThatOfTheLastPod(t *testing.T) {
	c := newChange(create, newRoute("r1", 0), 2)
	c.effective[0] = 3
	_, ok := c.everywhere()
	require.False(t, ok, "the second Pod never answered")
	c.effective[1] = 9
	last, ok := c.everywhere()
	require.True(t, ok)
	require.Equal(t, time.Duration(9), last)
	require.Equal(t, time.Duration(3), c.somewhere())
}

func TestResponsesAreReadOneAfterTheOther(t *testing.T) {
	reader := bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nbackend: a\r\n\r\na\n" +
		"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" +
		"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n" +
		"HTTP/1.1 200 OK\r\n\r\n"))
	for _, wanted := range []response{{status: 200, backend: 'a'}, {status: 404}, {status: 204, closes: true}} {
		given, err := readResponse(reader)
		require.NoError(t, err)
		require.Equal(t, wanted, given)
	}
	_, err := readResponse(reader)
	require.ErrorContains(t, err, "no length")
}

func TestStatusCountsOnlyWithBothConditions(t *testing.T) {
	r := routeStatus{}
	require.Zero(t, r.accepted())
	r.Status.Parents = append(r.Status.Parents, struct {
		Conditions []condition `json:"conditions"`
	}{[]condition{{"Accepted", "True", 4}}})
	require.Zero(t, r.accepted())
	r.Status.Parents[0].Conditions = append(r.Status.Parents[0].Conditions, condition{"ResolvedRefs", "True", 3})
	require.EqualValues(t, 3, r.accepted())
	r.Status.Parents[0].Conditions[0].Status = "False"
	require.Zero(t, r.accepted())
}

func TestStatusMayBeSeenBeforeTheWriteReturns(t *testing.T) {
	s, now := newStatuses(), time.Now()
	early, late := newChange(create, newRoute("early", 0), 0), newChange(create, newRoute("late", 0), 0)
	early.returned, late.returned = now, now
	s.observe("early", 1, now.Add(-time.Millisecond))
	s.expect(early, 1)
	s.expect(late, 2)
	s.observe("late", 1, now)
	require.Equal(t, 1, s.missing())
	require.Equal(t, unknown, s.acceptedOf(late))
	later := newChange(switchPath, late.route, 0)
	later.returned = now
	s.expect(later, 3)
	s.observe("late", 3, now.Add(5))
	require.Equal(t, time.Duration(5), s.acceptedOf(later))
	require.Zero(t, s.missing())
	require.Zero(t, s.acceptedOf(early))
	require.Equal(t, time.Duration(5), s.acceptedOf(late))
	s.expect(late, 4)
	s.forget("late")
	require.Zero(t, s.missing())
	require.Equal(t, superseded, s.acceptedOf(late))
}

func TestUsageIsParsed(t *testing.T) {
	cpu, err := cpuTime("7 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0")
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, cpu)
	_, err = cpuTime("7 (a) S 1")
	require.Error(t, err)
	status := "Name:\tweir\nVmHWM:\t    2000 kB\nVmRSS:\t    1000 kB\n"
	require.EqualValues(t, 1000*1024, memory(status, "VmRSS:"))
	require.EqualValues(t, 2000*1024, memory(status, "VmHWM:"))
	require.Zero(t, memory(status, "VmSwap:"))
}

func TestOptionsHaveBounds(t *testing.T) {
	_, err := parse([]string{"--routes", "5"})
	require.ErrorContains(t, err, "--routes is 5; it must be 20 to 50000")
	_, err = parse([]string{"--routes", "50", "--changes", "8"})
	require.NoError(t, err)
}
