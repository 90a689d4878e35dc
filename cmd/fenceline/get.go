package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fenceline/fenceline/client"
)

// getCmd fetches the bytes of a report.
type getCmd struct {
	Report  string `arg:"" help:"The report to fetch."`
	Output  string `short:"o" placeholder:"FILE" help:"Write to FILE, which is replaced only once all bytes are there and right; without it, to standard output."`
	Version int64  `placeholder:"N" help:"Fetch version N instead of the newest one."`
	remote
}

// Run fetches the bytes and checks their digest. What goes to standard output is checked
// as it flows, so there the exit code says whether it was right.
func (c *getCmd) Run(ctx context.Context, out *console) error {
	content, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer content.Close()
	if c.Output == "" || c.Output == "-" {
		_, err := io.Copy(out.Out, content)
		return err
	}
	progress, finish := showProgress(out.Err, "fetching "+c.Report)
	defer finish()
	return saveFile(c.Output, progressReader(content, content.Size, progress))
}

func (c *getCmd) open(ctx context.Context) (*client.Content, error) {
	if c.Version != 0 {
		return c.client().OpenVersion(ctx, c.Report, c.Version)
	}
	return c.client().Open(ctx, c.Report)
}

// saveFile writes content to path as a whole or not at all: to a temporary file beside
// it, which takes its place at the end. A link at path stays one; what is no regular
// file, such as a pipe, is written to directly.
func saveFile(path string, content io.Reader) error {
	mode := fs.FileMode(0o666)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("write %s: it is a directory", path)
	case err == nil && !info.Mode().IsRegular():
		return writeThrough(path, content)
	case err == nil:
		mode = info.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), ".fenceline-"+rand.Text()[:8]+".part")
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

// writeThrough writes content to something that is there and is no regular file.
func writeThrough(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
