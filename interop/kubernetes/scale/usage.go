// CPU time and memory of Weir's processes, from /proc.

package scale

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTicks is USER_HZ, which is 100 on every architecture that Go supports.
const clockTicks = 100

// usage is what the processes of a Pod use.
type usage struct {
	cpu            time.Duration
	resident, peak int64
}

// processesOf returns the processes of a Pod, without weir-pod, the cluster's own helper. Only the Pod's processes have
// its name as their hostname.
func processesOf(pod string) ([]string, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	variable := []byte("HOSTNAME=" + pod + "\x00")
	var found []string
	for _, folder := range folders {
		// Processes end at any time, and kernel threads have no environment.
		environment, err := os.ReadFile(folder + "/environ")
		if err != nil || !bytes.Contains(environment, variable) {
			continue
		}
		if program, err := os.Readlink(folder + "/exe"); err == nil && filepath.Base(program) != "weir-pod" {
			found = append(found, folder)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("Pod %s has no process; look into its log in the cluster's state folder", pod)
	}
	return found, nil
}

// usageOf returns what the Pod's processes have used since their start.
func usageOf(pod string) (usage, error) {
	folders, err := processesOf(pod)
	if err != nil {
		return usage{}, err
	}
	total := usage{}
	for _, folder := range folders {
		stat, err := os.ReadFile(folder + "/stat")
		if err != nil {
			return usage{}, err
		}
		cpu, err := cpuTime(string(stat))
		if err != nil {
			return usage{}, fmt.Errorf("%s/stat: %w", folder, err)
		}
		status, err := os.ReadFile(folder + "/status")
		if err != nil {
			return usage{}, err
		}
		total.cpu += cpu
		total.resident += memory(string(status), "VmRSS:")
		total.peak += memory(string(status), "VmHWM:")
	}
	return total, nil
}

// cpuTime parses /proc/PID/stat: user and system time are the fields 14 and 15. Field 2 may contain spaces.
func cpuTime(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("%q has too few fields", stat)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		count, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += count
	}
	return time.Duration(ticks) * time.Second / clockTicks, nil
}

// memory returns a line of /proc/PID/status in bytes; 0 if it is missing.
func memory(status, name string) int64 {
	_, rest, _ := strings.Cut(status, "\n"+name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	// Without a number: 0.
	kibibytes, _ := strconv.ParseInt(fields[0], 10, 64)
	return kibibytes * 1024
}

// ownCPU returns what this program has used.
func ownCPU() time.Duration {
	var used syscall.Rusage
	// It fails for wrong arguments only.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
