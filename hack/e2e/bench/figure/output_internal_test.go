package figure

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheTableOfADocumentIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.md")
	before := "# Performance\n\n" + begins + "what was there\n" + ends + "\nWhy it is so.\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []Row{{Name: "a", Ours: 1, Upstream: 1000, In: Bytes, Target: AtMost(2)}}
	want := "# Performance\n\n" + begins + `
2 cores.

|  | figure | ours | upstream | ratio | target |
| --- | --- | ---: | ---: | ---: | --- |
| PASS | a | 1 B | 1 KB | 0.001 | <= 2 B |

` + ends + "\nWhy it is so.\n"
	for range 2 { // again, over its own table
		if err := replace(path, "2 cores", rows); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
		}
	}
}

func TestADocumentWithoutMarksStaysAsItIs(t *testing.T) {
	for name, text := range map[string]string{
		"no marks":      "# Performance\n",
		"no second one": begins + "what was there\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "performance.md")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := replace(path, "2 cores", nil); err == nil {
				t.Error("there is no error")
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
