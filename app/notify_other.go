//go:build desktop && !bindings && !linux

package app

import (
	"context"
	"fmt"

	wailsruntime "github.com/wailsapp/wails/v2/pkg/runtime"

	"deskbell/backend/notify"
)

// newSender shows notifications through Wails, which knows the service of macOS and of Windows.
func (w *window) newSender() notify.Sender { return wailsSender{w} }

// notifications gets them going and says whether they can be shown.
func (w *window) notifications() (ok bool, reason string) {
	if err := (wailsSender{w}).init(); err != nil {
		return false, err.Error()
	}
	return true, ""
}

type wailsSender struct{ w *window }

func (s wailsSender) init() error {
	ctx := s.w.wails()
	if !wailsruntime.IsNotificationAvailable(ctx) {
		return notify.ErrUnavailable
	}
	if err := wailsruntime.InitializeNotifications(ctx); err != nil {
		return fmt.Errorf("%w: %w", notify.ErrUnavailable, err)
	}
	if ok, err := wailsruntime.RequestNotificationAuthorization(ctx); err != nil || !ok {
		return fmt.Errorf("%w: not allowed in the system's settings", notify.ErrUnavailable)
	}
	wailsruntime.OnNotificationResponse(ctx, func(r wailsruntime.NotificationResult) {
		if r.Error != nil {
			return
		}
		item, _ := r.Response.UserInfo["item"].(string)
		s.w.show(item)
	})
	return nil
}

func (s wailsSender) Send(_ context.Context, n notify.Note) error {
	return wailsruntime.SendNotification(s.w.wails(), wailsruntime.NotificationOptions{
		ID: n.ID, Title: n.Title, Body: n.Body, Data: map[string]any{"item": n.Item},
	})
}

func (s wailsSender) Withdraw(_ context.Context, id string) error {
	return wailsruntime.RemoveNotification(s.w.wails(), id)
}
