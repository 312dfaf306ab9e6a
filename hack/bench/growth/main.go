// Command growth draws the curves of docs/growth: each as an SVG, from what
// `make growth` has measured and nothing else.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	const arguments = 2
	if len(os.Args) != arguments {
		fmt.Fprintln(os.Stderr, "usage: growth FOLDER")
		os.Exit(1)
	}
	if err := drawAll(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// drawAll draws every chart in the folder that holds the measurements.
func drawAll(dir string) error {
	for _, c := range charts() {
		text, err := c.draw(dir)
		if err != nil {
			return fmt.Errorf("draw %s: %w", c.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.name+".svg"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
