package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// listing is what a list has found, and the version to watch from.
type listing[T object] struct {
	items   []T
	version string
}

// source lists and watches objects of one kind at the hub.
type source[T object] struct {
	list  func(context.Context) (listing[T], error)
	watch func(ctx context.Context, version string) (watch.Interface, error)
}

// follower prints what changes, and not again what has been printed.
type follower[T object] struct {
	view  *view[T]
	rows  printed      // what was last printed
	known map[string]T // namespace/name -> the object as last seen
}

// follow shows what there is and then what changes, until the context ends.
func follow[T object](ctx context.Context, s source[T], v *view[T]) error {
	f := &follower[T]{view: v, rows: printed{}, known: map[string]T{}}
	for ctx.Err() == nil {
		if err := f.pass(ctx, s); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil // to be interrupted is how a watch is meant to end
}

// pass lists, and watches for as long as the server keeps that up.
func (f *follower[T]) pass(ctx context.Context, s source[T]) error {
	found, err := s.list(ctx)
	if err != nil {
		return err
	}
	if err := f.relisted(found.items); err != nil {
		return err
	}
	watcher, err := s.watch(ctx, found.version)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	return f.drain(watcher)
}

// relisted shows the difference to what was known.
func (f *follower[T]) relisted(items []T) error {
	f.view.sort(items)
	gone := f.known
	f.known = make(map[string]T, len(items))
	for _, item := range items {
		delete(gone, keyOf(item))
		f.known[keyOf(item)] = item
	}
	for _, item := range gone {
		if err := f.deleted(item); err != nil {
			return err
		}
	}
	return f.show(items)
}

// drain shows the events of one watch until it ends. That the server ends it,
// or has forgotten where it began, is no error: list again.
func (f *follower[T]) drain(watcher watch.Interface) error {
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return unlessExpired(apierrors.FromObject(event.Object))
		}
		item, ok := event.Object.(T)
		if !ok {
			continue // a bookmark of some kind
		}
		if err := f.event(event.Type, item); err != nil {
			return err
		}
	}
	return nil
}

// unlessExpired drops the error of a server that has forgotten what we ask for.
func unlessExpired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return hubError("watch", err)
}

func (f *follower[T]) event(kind watch.EventType, item T) error {
	switch kind {
	case watch.Added, watch.Modified:
		f.known[keyOf(item)] = item
		return f.show([]T{item})
	case watch.Deleted:
		delete(f.known, keyOf(item))
		return f.deleted(item)
	case watch.Bookmark:
		return nil
	case watch.Error:
		return errors.New("watch: an error without an object")
	}
	return fmt.Errorf("watch: unknown event %q", kind)
}

// show prints those of the objects that have changed.
func (f *follower[T]) show(items []T) error {
	var kept []T
	for _, item := range items {
		if f.view.keep(item) {
			kept = append(kept, item)
			continue
		}
		f.forget(item)
	}
	switch f.view.format {
	case formatJSON, formatYAML:
		return each(kept, f.view.printOne)
	case formatName:
		return f.view.printNames(kept)
	}
	changed := f.rows.changed(f.view.columns, f.view.rows(kept))
	if len(changed) == 0 {
		return nil
	}
	return f.view.table.add(changed)
}

// deleted prints the rows of an object for the last time, marked in place of
// its age. In other formats nothing would tell it from a change.
func (f *follower[T]) deleted(item T) error {
	rows := f.forget(item)
	if f.view.objects != nil || f.view.format == formatName || !f.view.keep(item) || len(rows) == 0 {
		return nil
	}
	for _, r := range rows {
		for i, c := range f.view.columns {
			if c.name == columnAge {
				r.cells[i] = "deleted"
			}
		}
	}
	return f.view.table.add(rows)
}

// forget drops what was printed of an object, and returns its rows.
func (f *follower[T]) forget(item T) []row {
	rows := f.view.rows([]T{item})
	for _, r := range rows {
		delete(f.rows, r.key)
	}
	return rows
}

func keyOf(item object) string { return item.GetNamespace() + "/" + item.GetName() }

func each[T any](items []T, do func(T) error) error {
	for _, item := range items {
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
}
