//go:build desktop && !bindings

package app

/*
#cgo pkg-config: gtk+-3.0
#cgo !webkit2_41 pkg-config: webkit2gtk-4.0
#cgo webkit2_41 pkg-config: webkit2gtk-4.1

#include <stdlib.h>
#include "page_linux.h"
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// Wails does not tell when WebKit's process for the page ends, and keeps showing its last picture. So the web view is
// looked for below the windows of GTK, and asked itself.

// watchPage has pageDied and windowLost called. The handle is for as long as the process lives: GTK may keep it so long.
func (w *window) watchPage() { C.deskbell_watch(C.uintptr_t(cgo.NewHandle(w))) }

// loadPage loads the page again, where it was.
func loadPage() { C.deskbell_load() }

// showDead puts what the person must know, and two buttons, where the page was.
func (w *window) showDead() {
	text, load, quit := C.CString(deadText), C.CString(deadLoad), C.CString(deadQuit)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(load))
	defer C.free(unsafe.Pointer(quit))
	C.deskbell_show_dead(text, load, quit)
}

func windowOf(handle C.uintptr_t) *window { return cgo.Handle(handle).Value().(*window) }

// What follows is called by GTK, which must not wait.

//export deskbellPageDied
func deskbellPageDied(handle C.uintptr_t, reason *C.char) {
	go windowOf(handle).pageDied(C.GoString(reason))
}

//export deskbellWindowLost
func deskbellWindowLost(handle C.uintptr_t) { go windowOf(handle).windowLost() }

//export deskbellLoad
func deskbellLoad(handle C.uintptr_t) { go windowOf(handle).loadDead() }

//export deskbellQuit
func deskbellQuit(handle C.uintptr_t) { go windowOf(handle).quit() }

//export deskbellNoPage
func deskbellNoPage(handle C.uintptr_t) {
	windowOf(handle).log.Warn("the web view was not found: a page that ends is not loaded again")
}
