package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen shows pictures, one in place of the other where it is a terminal, and
// else one below the other as they change.
type screen struct {
	out      io.Writer
	terminal int  // file descriptor; -1: none
	colors   bool // of use on a terminal alone

	shown string // the last text
	size  window // and the window that it was made for
	at    time.Time
	lines int // that it takes
}

// newScreen looks what the output is.
func newScreen(out io.Writer) *screen {
	s := &screen{out: out, terminal: -1}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return s
	}
	s.terminal = int(file.Fd())
	s.colors = os.Getenv("NO_COLOR") == ""
	return s
}

// show shows a picture, if it looks different from the last. Where nothing can
// be redrawn, a change waits until the last one has stood for a moment, the
// hint is shown once, and news alone are no change.
func (s *screen) show(p picture, now time.Time) error {
	if s.terminal < 0 {
		return s.append(p, now)
	}
	w := s.window()
	text := p.text(w)
	if text == s.shown && w == s.size {
		return nil
	}
	back := "\x1b[2J\x1b[H" // a new window: nothing is where it was
	if w == s.size {
		back = strings.Repeat("\x1b[A", s.lines) + "\r\x1b[J"
	}
	if s.shown == "" {
		back = ""
	}
	s.shown, s.size = text, w
	s.lines = height(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), w.columns)
	_, err := io.WriteString(s.out, back+text)
	return err
}

func (s *screen) append(p picture, now time.Time) error {
	const pause = time.Second
	silent := p
	silent.news, silent.hint = nil, nil
	text := silent.text(window{})
	if text == s.shown || now.Before(s.at.Add(pause)) {
		return nil
	}
	first := s.shown == ""
	s.shown, s.at = text, now
	if !first {
		p.hint = nil
	}
	_, err := fmt.Fprintf(s.out, "%s\n%s\n", now.Format("15:04:05"), p.text(window{}))
	return err
}

func (s *screen) window() window {
	columns, rows, err := term.GetSize(s.terminal)
	if err != nil || columns < 1 || rows < 1 {
		columns, rows = 80, 24
	}
	return window{columns: columns, rows: rows, colors: s.colors}
}
