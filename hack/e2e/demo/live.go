package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

const (
	lookEvery   = 300 * time.Millisecond
	lookTimeout = 3 * time.Second
	chapterTime = 6 * time.Second // between two changes in one member
)

// live shows the totals as they change, until ctx or the time that was asked
// for ends. When it returns, nothing is going on in the members any more.
func (d *demo) live(ctx context.Context) error {
	deadline := func() {}
	shown := ctx
	if d.limit > 0 {
		shown, deadline = context.WithTimeout(ctx, d.limit)
	}
	defer deadline()
	happening := &news{latest: "nothing yet"}
	inner, cancel := context.WithCancel(shown)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	members := fleetOfDemo()
	for i, spec := range members {
		c := &churn{member: d.scene.Member(spec.name), news: happening}
		shift := time.Duration(i+1) * chapterTime / time.Duration(len(members))
		group.Go(func() { c.run(inner, shift, chapterTime) })
	}
	group.Go(func() { d.act(inner, happening) })
	d.say("")
	return d.look(shown, happening)
}

// look draws one picture after the other.
func (d *demo) look(ctx context.Context, happening *news) error {
	screen := newScreen(d.out)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	picture := picture{hint: d.hint()}
	for {
		d.refresh(ctx, &picture)
		picture.news = happening.lines()
		if ctx.Err() != nil {
			return nil
		}
		if err := screen.show(picture, time.Now()); err != nil {
			return fmt.Errorf("show the table: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// refresh reads what the hub says now. What cannot be read stays as it was, and
// the picture says why.
func (d *demo) refresh(ctx context.Context, p *picture) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	p.problem = ""
	quotas, err := d.scene.Hub.Quota.Quotas("").List(ctx, metav1.ListOptions{})
	if err == nil {
		p.quotas = quotas.Items
		slices.SortFunc(p.quotas, func(a, b v1alpha1.FleetQuota) int {
			return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
		})
	}
	members, membersErr := d.scene.Hub.Quota.Members().List(ctx, metav1.ListOptions{})
	if membersErr == nil {
		p.members = members.Items
		slices.SortFunc(p.members, func(a, b v1alpha1.FleetMember) int { return strings.Compare(a.Name, b.Name) })
	}
	if errors.Join(err, membersErr) != nil {
		p.problem = "the hub's API server does not answer: these are the numbers of before"
		return
	}
	if d.healthy(ctx) != nil {
		p.problem = "the hub process does not answer: these are its last numbers; its log is " + d.hub.Log
	}
}

func (d *demo) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.hub.Health+"/livez", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// hint is what to try next, fit for the clipboard.
func (d *demo) hint() []string {
	return []string{
		"Try in a second terminal (Ctrl-C here stops everything):",
		"  . '" + d.env() + "'",
		"  kubectl-fleetquota get -A                       # or kubectl get flq -A",
		"  kubectl-fleetquota describe team-shop/compute   # each member's part",
		"  fleet freeze us-1                               # and fleet thaw us-1",
	}
}
