package synthetic

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// zippers are writers that wait for work. They are large.
type zippers struct{ pool sync.Pool }

func (z *zippers) take(w io.Writer) *gzip.Writer {
	if idle, ok := z.pool.Get().(*gzip.Writer); ok {
		idle.Reset(w)
		return idle
	}
	fresh, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) //nolint:errcheck // the level exists
	return fresh
}

func (z *zippers) give(w *gzip.Writer) {
	w.Reset(nil)
	z.pool.Put(w)
}

// zipped says whether the client takes gzip.
func zipped(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(part) == "gzip" {
			return true
		}
	}
	return false
}

// zipFrom is the size above which kube-apiserver compresses an answer.
const zipFrom = 128 << 10

// send answers with a body of a size that is written in pieces.
func send(w http.ResponseWriter, r *http.Request, contentType string, size int, body func(write func([]byte))) {
	w.Header().Set("Content-Type", contentType)
	var out io.Writer = w
	if size > zipFrom && zipped(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Add("Vary", "Accept-Encoding")
		zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer zip.Close()
		out = zip
	}
	w.WriteHeader(http.StatusOK)
	gone := false
	body(func(p []byte) {
		if gone {
			return
		}
		_, err := out.Write(p)
		gone = err != nil
	})
}
