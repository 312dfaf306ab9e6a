package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/hack/conformance/answer"
	"github.com/fleetquota/fleetquota/hack/conformance/gen"
	"github.com/fleetquota/fleetquota/hack/conformance/ours"
)

// digest is as much of an answer as is recorded.
type digest [4]byte

func digestOf(text string) digest {
	sum := sha256.Sum256([]byte(text))
	return digest(sum[:4])
}

// Record is upstream's answers about the Worlds of a seed, in short.
type Record struct {
	Kubernetes string `json:"kubernetes"` // the version that has answered
	Seed       uint64 `json:"seed"`
	Objects    int    `json:"objects"`
	Questions  string `json:"questions"` // a digest of what was asked

	answers []digest // one per World
}

// RecordFile is where the answers of a minor version are recorded.
func RecordFile(minor string) string {
	return filepath.Join(Folder(), "testdata", "v"+minor+".answers")
}

// Release is the release of Kubernetes that answers for a minor version.
func Release(minor string) (string, error) {
	text, err := os.ReadFile(filepath.Join(Folder(), "v"+minor, "go.mod"))
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`k8s\.io/kubernetes (v[0-9.]+)`).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("v%s/go.mod names no version of Kubernetes", minor)
	}
	return string(found[1]), nil
}

// worlds makes the Worlds of a seed until they hold so many objects, and digests
// them.
func worlds(seed uint64, objects int) (all []*answer.World, digest string, err error) {
	sum := sha256.New()
	for size, i := 0, uint64(0); size < objects; i++ {
		world := gen.World(seed, i)
		line, err := json.Marshal(world)
		if err != nil {
			return nil, "", err
		}
		sum.Write(line)
		all = append(all, world)
		size += world.Size()
	}
	return all, hex.EncodeToString(sum.Sum(nil)), nil
}

// Make records what upstream answers.
func Make(upstream *Upstream, minor string, seed uint64, objects int) (*Record, error) {
	release, err := Release(minor)
	if err != nil {
		return nil, err
	}
	all, questions, err := worlds(seed, objects)
	if err != nil {
		return nil, err
	}
	record := &Record{Kubernetes: release, Seed: seed, Objects: objects, Questions: questions}
	for _, world := range all {
		if err := upstream.Ask(world); err != nil {
			return nil, err
		}
		text, err := upstream.Next()
		if err != nil {
			return nil, err
		}
		record.answers = append(record.answers, digestOf(text))
	}
	return record, nil
}

// Write writes a record to its file.
func (r *Record) Write(minor string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	for _, answered := range r.answers {
		text = append(text, answered[:]...)
	}
	return os.WriteFile(RecordFile(minor), text, 0o644)
}

// ReadRecord reads the record of a minor version.
func ReadRecord(minor string) (*Record, error) {
	text, err := os.ReadFile(RecordFile(minor))
	if err != nil {
		return nil, err
	}
	head, rest, _ := bytes.Cut(text, []byte("\n"))
	var record Record
	if err := json.Unmarshal(head, &record); err != nil {
		return nil, fmt.Errorf("read %s: %w", RecordFile(minor), err)
	}
	for ; len(rest) >= len(digest{}); rest = rest[len(digest{}):] {
		record.answers = append(record.answers, digest(rest[:len(digest{})]))
	}
	return &record, nil
}

// ErrStale says that other questions were asked when the answers were recorded.
var ErrStale = errors.New("the questions have changed since the answers were recorded: run make conformance-record")

// Compare compares our answers with the recorded ones.
func (r *Record) Compare(minor string) (Result, error) {
	release, err := Release(minor)
	if err != nil {
		return Result{}, err
	}
	all, questions, err := worlds(r.Seed, r.Objects)
	if err != nil {
		return Result{}, err
	}
	if questions != r.Questions || release != r.Kubernetes || len(all) != len(r.answers) {
		return Result{}, ErrStale
	}
	var result Result
	remembered := wire.NewCharges(0)
	for i, world := range all {
		mine, err := ours.Answer(minor, decoded(world), remembered)
		if err != nil {
			return result, fmt.Errorf("%w, in\n%s", err, YAML(world))
		}
		result.add(world)
		if digestOf(mine) != r.answers[i] {
			result.Different = world
			return result, nil
		}
	}
	return result, nil
}
