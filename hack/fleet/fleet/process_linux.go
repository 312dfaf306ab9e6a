package fleet

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// recordScript prints the shell's pid, the boot of the machine, and the line
// of /proc that holds the time at which the shell started.
const recordScript = `read -r boot </proc/sys/kernel/random/boot_id; IFS= read -r stat <"/proc/$$/stat"; ` +
	`printf '%s\n%s\n%s\n' "$$" "$boot" "$stat"`

const startTimeField = 22 // of /proc/PID/stat, counted from 1 as in proc(5)

func processAttributes(l lifetime) *syscall.SysProcAttr {
	// A session of its own keeps Ctrl-C in our terminal away from it: who
	// started it also stops it, in order.
	attributes := &syscall.SysProcAttr{Setsid: true}
	if l == owned {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return attributes
}

func recordedBirth(rest string) (string, error) {
	boot, stat, _ := strings.Cut(rest, "\n")
	birth, _, err := parseStat(boot, stat)
	return birth, err
}

// inspect reads the birth and the state letter of a process.
func inspect(pid int) (string, byte, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, err
	}
	return parseStat(strings.TrimSpace(string(boot)), string(stat))
}

// parseStat reads a line of /proc/PID/stat. Its second field, the name in
// parentheses, may hold anything, so counting starts behind the last one.
func parseStat(boot, stat string) (string, byte, error) {
	const third = 3 // the first field behind the name
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= startTimeField-third {
		return "", 0, fmt.Errorf("process status %q is incomplete", stat)
	}
	return boot + "/" + fields[startTimeField-third], fields[0][0], nil
}
