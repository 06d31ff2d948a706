#include <stdint.h>

/* All of these may be called from any thread; the work is done in GTK's own. */
void deskbell_watch(uintptr_t window);
void deskbell_load(void);
void deskbell_show_dead(const char *text, const char *load, const char *quit);
