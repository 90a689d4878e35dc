package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// showAfter is how long a transfer lasts before it is shown.
const showAfter = time.Second

// showProgress returns what to call with how far a transfer has come, and at its end. It shows a bar where to is a
// terminal and the transfer lasts, and is silent otherwise.
func showProgress(to io.Writer, what string) (progress func(done, total int64), finish func()) {
	file, ok := to.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, func() {}
	}
	began := time.Now()
	var bar *progressbar.ProgressBar
	return func(done, total int64) {
			if bar == nil && time.Since(began) < showAfter {
				return
			}
			if bar == nil {
				bar = progressbar.NewOptions64(total,
					progressbar.OptionSetWriter(to), progressbar.OptionSetDescription(what), progressbar.OptionShowBytes(true),
					progressbar.OptionThrottle(showAfter/10), progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(true))
			}
			_ = bar.Set64(done) // a bar that cannot be drawn is no reason to stop
		}, func() {
			if bar != nil {
				_ = bar.Finish() // nor one that cannot be cleared
			}
		}
}

// progressReader tells how far the reading has come; without progress it is the reader itself.
func progressReader(from io.Reader, total int64, progress func(done, total int64)) io.Reader {
	if progress == nil {
		return from
	}
	return &countedReader{Reader: from, total: total, progress: progress}
}

// countedReader counts what was read.
type countedReader struct {
	io.Reader
	done, total int64
	progress    func(done, total int64)
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.done += int64(n)
	r.progress(r.done, r.total)
	return n, err
}
