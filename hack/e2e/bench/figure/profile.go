package figure

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

// Profiles is which profiles a program writes of itself.
type Profiles struct {
	CPU, Heap string // files; empty: none
}

// Flags defines the flags, named as those of `go test`.
func (p *Profiles) Flags() {
	flag.StringVar(&p.CPU, "cpuprofile", "", "write a profile of this program's CPU to this file")
	flag.StringVar(&p.Heap, "memprofile", "", "write a profile of what this program has allocated to this file")
}

// Of runs something and writes the profiles that are asked for.
func (p *Profiles) Of(work func() error) error {
	if p.CPU == "" {
		return errors.Join(work(), p.heap())
	}
	file, err := os.Create(p.CPU)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(fmt.Errorf("profile the CPU: %w", err), file.Close())
	}
	err = work()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close(), p.heap())
}

func (p *Profiles) heap() error {
	if p.Heap == "" {
		return nil
	}
	file, err := os.Create(p.Heap)
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
