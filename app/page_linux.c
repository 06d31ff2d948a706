//go:build desktop && !bindings

#include "page_linux.h"

#include <webkit2/webkit2.h>

#include "_cgo_export.h"

#define START "wails://wails/"
#define WINDOW "deskbell-window" /* the Go window, kept with the web view */
#define DEAD "deskbell-dead"     /* what stands in place of a page that ended */

static void find(GtkWidget *widget, gpointer found)
{
	if (WEBKIT_IS_WEB_VIEW(widget))
		*(WebKitWebView **)found = WEBKIT_WEB_VIEW(widget);
	else if (GTK_IS_CONTAINER(widget))
		gtk_container_forall(GTK_CONTAINER(widget), find, found);
}

/* the_view is the one web view there is, or nothing. */
static WebKitWebView *the_view(void)
{
	GList *windows = gtk_window_list_toplevels();
	WebKitWebView *view = NULL;

	for (GList *w = windows; w; w = w->next)
		find(GTK_WIDGET(w->data), &view);
	g_list_free(windows);
	return view;
}

static uintptr_t window_of(gpointer view)
{
	return (uintptr_t)g_object_get_data(G_OBJECT(view), WINDOW);
}

static void died(WebKitWebView *view, WebKitWebProcessTerminationReason reason, gpointer unused)
{
	(void)unused;
	deskbellPageDied(window_of(view), reason == WEBKIT_WEB_PROCESS_EXCEEDED_MEMORY_LIMIT ? "it took too much memory" : "it crashed or was killed");
}

/*
 * Another program destroyed the window. GTK would now destroy its widgets, which Wails goes on using. Instead they let go
 * of the window and get a new one when they are shown.
 */
static gboolean lost(GtkWidget *window, GdkEvent *event, gpointer view)
{
	(void)event;
	gtk_widget_hide(window);
	gtk_widget_unrealize(window);
	deskbellWindowLost(window_of(view));
	return TRUE;
}

static gboolean watch(gpointer window)
{
	WebKitWebView *view = the_view();

	if (!view) {
		deskbellNoPage((uintptr_t)window);
		return G_SOURCE_REMOVE;
	}
	g_object_set_data(G_OBJECT(view), WINDOW, window);
	g_signal_connect(view, "web-process-terminated", G_CALLBACK(died), NULL);
	g_signal_connect(gtk_widget_get_toplevel(GTK_WIDGET(view)), "destroy-event", G_CALLBACK(lost), view);
	return G_SOURCE_REMOVE;
}

void deskbell_watch(uintptr_t window)
{
	g_idle_add(watch, (gpointer)window);
}

static gboolean load(gpointer unused)
{
	WebKitWebView *view = the_view();
	GtkWidget *dead;
	const char *uri;

	(void)unused;
	if (!view)
		return G_SOURCE_REMOVE;
	dead = g_object_get_data(G_OBJECT(view), DEAD);
	if (dead) {
		g_object_set_data(G_OBJECT(view), DEAD, NULL);
		gtk_widget_destroy(dead);
		gtk_widget_show(GTK_WIDGET(view));
		gtk_widget_grab_focus(GTK_WIDGET(view));
	}
	uri = webkit_web_view_get_uri(view);
	webkit_web_view_load_uri(view, uri && *uri ? uri : START);
	return G_SOURCE_REMOVE;
}

void deskbell_load(void)
{
	g_idle_add(load, NULL);
}

static void press_load(GtkButton *button, gpointer view)
{
	(void)button;
	deskbellLoad(window_of(view));
}

static void press_quit(GtkButton *button, gpointer view)
{
	(void)button;
	deskbellQuit(window_of(view));
}

static GtkWidget *button(const char *label, GCallback pressed, WebKitWebView *view)
{
	GtkWidget *b = gtk_button_new_with_label(label);

	g_signal_connect(b, "clicked", pressed, view);
	return b;
}

/* show_dead takes an array of three texts: what is said, and the labels of the two buttons. */
static gboolean show_dead(gpointer data)
{
	char **texts = data;
	WebKitWebView *view = the_view();
	GtkWidget *box, *label, *buttons, *again;

	if (!view || g_object_get_data(G_OBJECT(view), DEAD))
		return G_SOURCE_REMOVE;
	box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 24);
	gtk_widget_set_valign(box, GTK_ALIGN_CENTER);
	gtk_widget_set_halign(box, GTK_ALIGN_CENTER);
	label = gtk_label_new(texts[0]);
	gtk_label_set_line_wrap(GTK_LABEL(label), TRUE);
	gtk_label_set_max_width_chars(GTK_LABEL(label), 60);
	gtk_label_set_selectable(GTK_LABEL(label), TRUE);
	gtk_container_add(GTK_CONTAINER(box), label);
	buttons = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12);
	gtk_widget_set_halign(buttons, GTK_ALIGN_CENTER);
	again = button(texts[1], G_CALLBACK(press_load), view);
	gtk_container_add(GTK_CONTAINER(buttons), again);
	gtk_container_add(GTK_CONTAINER(buttons), button(texts[2], G_CALLBACK(press_quit), view));
	gtk_container_add(GTK_CONTAINER(box), buttons);

	gtk_widget_hide(GTK_WIDGET(view));
	gtk_box_pack_start(GTK_BOX(gtk_widget_get_parent(GTK_WIDGET(view))), box, TRUE, TRUE, 0);
	gtk_widget_show_all(box);
	gtk_widget_grab_focus(again);
	g_object_set_data(G_OBJECT(view), DEAD, box);
	return G_SOURCE_REMOVE;
}

void deskbell_show_dead(const char *text, const char *load_label, const char *quit_label)
{
	char **texts = g_new0(char *, 4);

	texts[0] = g_strdup(text);
	texts[1] = g_strdup(load_label);
	texts[2] = g_strdup(quit_label);
	g_idle_add_full(G_PRIORITY_DEFAULT_IDLE, show_dead, texts, (GDestroyNotify)g_strfreev);
}
