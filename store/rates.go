package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"deskbell/backend/inbox"
)

// Rates says, for each of those moments, what an agent has sent the person since. It reads the items that are younger
// than the earliest of them, once, and no others: their numbers are in the order of arrival.
func (s *Store) Rates(ctx context.Context, agent string, since ...time.Time) ([]inbox.Rate, error) {
	rates, took := make([]inbox.Rate, len(since)), make([][]int64, len(since))
	if len(since) == 0 {
		return rates, nil
	}
	first, err := s.firstSince(ctx, ms(slices.MinFunc(since, time.Time.Compare)))
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, `SELECT kind, state, received_at, ended_at FROM items WHERE n >= ? AND agent = ? AND mailbox IS NULL`, first, agent)
	err = each(rows, err, scanCame, func(c came) bool {
		for i, moment := range since {
			if c.received < ms(moment) {
				continue
			}
			if rates[i].Add(c.kind, c.state); c.state.ByPerson() {
				took[i] = append(took[i], max(0, c.ended-c.received))
			}
		}
		return true
	})
	for i, all := range took {
		if slices.Sort(all); len(all) > 0 {
			rates[i].Median = time.Duration(all[(len(all)-1)/2]) * time.Millisecond
		}
	}
	return rates, err
}

// came is what a rate knows of an item.
type came struct {
	kind            inbox.Kind
	state           inbox.State
	received, ended int64
}

func scanCame(row scanner) (c came, err error) {
	err = row.Scan(&c.kind, &c.state, &c.received, &c.ended)
	return c, err
}

// firstSince is the number of the first item that came at or after then, by halving: no index is kept of arrival.
func (s *Store) firstSince(ctx context.Context, then int64) (int64, error) {
	newest, err := s.stmt(ctx, `SELECT coalesce(max(n), 0) FROM items`)
	if err != nil {
		return 0, err
	}
	at, err := s.stmt(ctx, `SELECT n, received_at FROM items WHERE n >= ? ORDER BY n LIMIT 1`)
	if err != nil {
		return 0, err
	}
	var low, high int64 // the one that is sought is in (low, high]
	if err := newest.QueryRowContext(ctx).Scan(&high); err != nil {
		return 0, err
	}
	for high++; high-low > 1; {
		middle := low + (high-low)/2
		var n, received int64
		switch err := at.QueryRowContext(ctx, middle).Scan(&n, &received); {
		case errors.Is(err, sql.ErrNoRows) || err == nil && received >= then:
			high = middle
		case err != nil:
			return 0, err
		default:
			low = n // nothing is between middle and n
		}
	}
	return high, nil
}
