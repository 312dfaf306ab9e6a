package process_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/fleetquota/fleetquota/hack/bench/process"
)

func TestOwnUseIsSeen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	before, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const much = 64 << 20
	memory := make([]byte, much)
	for i := range memory {
		memory[i] = byte(i)
	}
	after, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(memory)
	if grown := after.RSS - before.RSS; grown < much/2 || after.Peak < after.RSS || after.CPU < before.CPU {
		t.Errorf("%d bytes more are seen as %d; before %+v, after %+v", much, grown, before, after)
	}
}
