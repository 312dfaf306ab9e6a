package fleet

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sleeper starts a program that would run for a minute.
func sleeper(t *testing.T, l lifetime) *child {
	t.Helper()
	p := process{name: "sleeper", dir: t.TempDir()}
	c, err := p.start(t.Context(), l, "/bin/sleep", []string{"60"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(context.WithoutCancel(t.Context()), 0); err != nil {
			t.Error(err)
		}
		<-c.ended
	})
	return c
}

func TestStopEndsTheProcess(t *testing.T) {
	t.Parallel()
	for sentence, tc := range map[string]struct {
		before syscall.Signal
		grace  time.Duration
	}{
		"when asked":                 {before: syscall.SIGCONT, grace: time.Minute},
		"when asked while frozen":    {before: syscall.SIGSTOP, grace: time.Minute},
		"at once":                    {before: syscall.SIGCONT},
		"at once even if it is held": {before: syscall.SIGSTOP},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			c := sleeper(t, owned)
			if err := c.signal(tc.before); err != nil {
				t.Fatal(err)
			}
			if err := c.stop(t.Context(), tc.grace); err != nil {
				t.Fatal(err)
			}
			<-c.ended
			if handle, _ := c.find(); handle != nil {
				t.Error("the process still runs")
			}
			if _, err := os.Stat(c.record()); err == nil {
				t.Error("the record is still there")
			}
		})
	}
}

func TestAPassedOnPidIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := sleeper(t, detached)
	text, err := os.ReadFile(c.record())
	if err != nil {
		t.Fatal(err)
	}
	// The record of an earlier process that had the same number.
	earlier := process{name: "earlier", dir: c.dir}
	born, err := c.recorded()
	if err != nil {
		t.Fatal(err)
	}
	_, start, _ := strings.Cut(born.birth, "/")
	other := strings.ReplaceAll(string(text), " "+start+" ", " 1 ")
	if err := os.WriteFile(earlier.record(), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if handle, _ := earlier.find(); handle != nil {
		t.Fatal("a process with another start time was taken for ours")
	}
	if err := earlier.stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if handle, _ := c.find(); handle == nil {
		t.Fatal("a process that is not ours was killed")
	}
}

func TestAFrozenProcessIsSeen(t *testing.T) {
	t.Parallel()
	c := sleeper(t, owned)
	if err := c.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, letter := c.find(); letter == 'T' {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the process is not seen as frozen")
		}
		time.Sleep(pollInterval)
	}
}

func TestAFailedStartTellsTheLastWords(t *testing.T) {
	t.Parallel()
	p := process{name: "talker", dir: t.TempDir()}
	c, err := p.start(t.Context(), owned, "/bin/sh", []string{"-c", "echo first; echo no such port; exit 3"})
	if err == nil { // it ends before the start is through, or right after
		<-c.ended
		err = c.failure()
	}
	want := "talker ended: exit status 3: no such port (see " + p.logFile() + ")"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestARecordThatIsNoneMeansNoProcess(t *testing.T) {
	t.Parallel()
	for sentence, text := range map[string]string{
		"empty":         "",
		"torn":          "12",
		"without birth": "12\n",
		"of init":       "1\nboot\n1 (init) S",
		"of nonsense":   "x\ny\nz\n",
	} {
		p := process{name: "none", dir: t.TempDir()}
		if err := os.WriteFile(p.record(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if handle, _ := p.find(); handle != nil {
			t.Errorf("a record %s found a process", sentence)
		}
		if err := p.signal(syscall.SIGKILL); err != nil {
			t.Errorf("a record %s: %v", sentence, err)
		}
	}
}
