//go:build !linux

package fleet

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// recordScript prints the shell's pid and the time at which it started.
const recordScript = `printf '%s\n%s\n' "$$" "$(LC_ALL=C ps -o lstart= -p $$)"`

// processAttributes cannot tie a child's life to ours here, so a test that
// crashes leaves clusters behind; the next Up or Down in their folder ends them.
func processAttributes(lifetime) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

func recordedBirth(rest string) (string, error) {
	birth := strings.Join(strings.Fields(rest), " ")
	if birth == "" {
		return "", errors.New("no start time")
	}
	return birth, nil
}

// inspect reads the birth and the state letter of a process.
func inspect(pid int) (string, byte, error) {
	ps := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid))
	ps.Env = append(ps.Environ(), "LC_ALL=C")
	out, err := ps.Output()
	if err != nil {
		return "", 0, err
	}
	fields := strings.Fields(string(out))
	if len(fields) < 2 {
		return "", 0, errors.New("no such process")
	}
	return strings.Join(fields[1:], " "), fields[0][0], nil
}
