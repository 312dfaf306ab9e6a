package scene

import (
	"runtime"
	"syscall"
)

// run starts the program and waits for its end. The thread stays: the kernel
// ends the program when the thread that started it does, and so with us.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	err := p.command.Start()
	started <- err
	if err == nil {
		p.err = p.command.Wait()
	}
	close(p.ended)
}
