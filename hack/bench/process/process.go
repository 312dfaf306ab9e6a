// Package process reads what a process uses from /proc, of Linux alone.
package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Use is what a process uses.
type Use struct {
	RSS  int64         `json:"rss"`  // bytes of memory that are its own now
	Peak int64         `json:"peak"` // the most of that since its start, or since ResetPeak
	CPU  time.Duration `json:"cpu"`  // of all cores together, since its start
}

// Of looks at a process.
func Of(pid int) (Use, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Use{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Use{}, err
	}
	var u Use
	if u.RSS, err = kilobytes(status, "VmRSS:"); err != nil {
		return Use{}, err
	}
	if u.Peak, err = kilobytes(status, "VmHWM:"); err != nil {
		return Use{}, err
	}
	u.CPU, err = processorTime(string(stat))
	return u, err
}

// kilobytes finds a line of /proc/PID/status and turns it into bytes.
func kilobytes(status []byte, name string) (int64, error) {
	const kilo = 1024
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if rest, found := strings.CutPrefix(lines.Text(), name); found {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n * kilo, err
		}
	}
	return 0, fmt.Errorf("the status of the process has no %s", name)
}

// processorTime reads fields 14 and 15 of /proc/PID/stat. Field 2 may hold anything,
// so counting starts behind its last parenthesis.
func processorTime(stat string) (time.Duration, error) {
	const third, user, system, tick = 3, 14, 15, time.Second / 100
	parts := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(parts) <= system-third {
		return 0, fmt.Errorf("process status %q is incomplete", stat)
	}
	var sum time.Duration
	for _, i := range []int{user, system} {
		ticks, err := strconv.ParseInt(parts[i-third], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}

// ResetPeak makes the present use of a process its peak.
func ResetPeak(pid int) error {
	const peak = "5" // see proc(5), clear_refs
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(peak), 0)
}
