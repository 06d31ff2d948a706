/*
 * Lets WebKitWebDriver steer a window whose program never asked for it, for tests only.
 *
 * Preloaded, this takes the place of the one function with which the program makes its web view. The view it returns is
 * the same but for being marked as controlled by automation, and the web context then allows a driver in. When a driver
 * comes, it is given that view instead of a new one.
 */
#include <webkit2/webkit2.h>

static GtkWidget *the_view;

static WebKitWebView *give_view(WebKitAutomationSession *session, gpointer unused)
{
	(void)session;
	(void)unused;
	return WEBKIT_WEB_VIEW(the_view);
}

static void driver_came(WebKitWebContext *context, WebKitAutomationSession *session, gpointer unused)
{
	WebKitApplicationInfo *info = webkit_application_info_new();

	(void)context;
	(void)unused;
	webkit_application_info_set_name(info, "deskbell");
	webkit_application_info_set_version(info, 1, 0, 0);
	webkit_automation_session_set_application_info(session, info);
	webkit_application_info_unref(info);
	g_signal_connect(session, "create-web-view", G_CALLBACK(give_view), NULL);
}

GtkWidget *webkit_web_view_new_with_user_content_manager(WebKitUserContentManager *manager)
{
	WebKitWebContext *context = webkit_web_context_get_default();

	webkit_web_context_set_automation_allowed(context, TRUE);
	g_signal_connect(context, "automation-started", G_CALLBACK(driver_came), NULL);
	the_view = g_object_new(WEBKIT_TYPE_WEB_VIEW, "user-content-manager", manager,
		"is-controlled-by-automation", TRUE, NULL);
	return the_view;
}
