//go:build !linux

package scene

// run starts the program and waits for its end.
func (p *Process) run(started chan<- error) {
	err := p.command.Start()
	started <- err
	if err == nil {
		p.err = p.command.Wait()
	}
	close(p.ended)
}
