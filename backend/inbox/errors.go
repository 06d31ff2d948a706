package inbox

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors a use case answers with. A binding maps each of them once to its own words.
var (
	// ErrNoStorage: what was to be kept could not be written.
	ErrNoStorage = errors.New("the hub cannot write to its data folder: the disk is full, or the folder is gone")
	// ErrNotFound: there is no such item, or the caller may not know of it.
	ErrNotFound = errors.New("no such message")
	// ErrGone: the caller's own item was deleted or its retention ended.
	ErrGone = errors.New("the message is no longer kept")
	// ErrNotAllowed: the caller may know of the item and may not decide it.
	ErrNotAllowed = errors.New("not allowed to resolve this message")
	// ErrDecided: the operator decided already and may still take it back; nothing replaces that before they do.
	ErrDecided = errors.New("already decided; the decision is kept back for its undo time, and has to be taken back first")
	// ErrNotAcknowledgeable: there is no delivered answer to acknowledge.
	ErrNotAcknowledgeable = errors.New("there is no delivered answer to acknowledge")
	// ErrWrongKind: the act makes no sense for this kind of item.
	ErrWrongKind = errors.New("not possible for this kind of message")
)

// FieldError names one offending field by JSON Pointer.
type FieldError struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// String is the field and what is wrong with it. What is wrong with the whole names no field.
func (f FieldError) String() string {
	if f.Pointer == "" {
		return f.Message
	}
	return f.Pointer + ": " + f.Message
}

// InvalidError: the input is understood and not acceptable; Fields is never empty.
type InvalidError struct{ Fields []FieldError }

func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.String()
	}
	return strings.Join(parts, "; ")
}

func invalid(pointer, format string, args ...any) *InvalidError {
	return &InvalidError{Fields: []FieldError{{Pointer: pointer, Message: fmt.Sprintf(format, args...)}}}
}

// Invalid returns an *InvalidError about one field.
func Invalid(pointer, format string, args ...any) error { return invalid(pointer, format, args...) }

// TerminalError: the act came too late; Item shows the real outcome.
type TerminalError struct{ Item Item }

func (e *TerminalError) Error() string { return "already " + string(e.Item.State) }

// ConflictError: the idempotency key was used before with another payload. Item is the first one.
type ConflictError struct{ Item Item }

func (e *ConflictError) Error() string {
	return "the idempotency key was used with a different message"
}

// LimitError: a budget is used up; try again after RetryAfter.
type LimitError struct {
	What       string
	RetryAfter time.Duration
}

func (e *LimitError) Error() string { return e.What }
