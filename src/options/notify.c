#include "options/notify.h"

#include <stdbool.h>
#include <stdlib.h>

#ifdef BATON_SYSTEMD
#include <dlfcn.h>
#include <systemd/sd-daemon.h>

/* Loaded where a service manager listens, and not before: elsewhere a node need not carry it. */
static __typeof__(&sd_notifyf) send_state;
static __typeof__(&sd_watchdog_enabled) watchdog_enabled;

static bool is_heard(void)
{
    static bool is_loaded;
    if (!is_loaded) {
        void *library = getenv("NOTIFY_SOCKET") ? dlopen("libsystemd.so.0", RTLD_NOW) : NULL;
        is_loaded = true;
        if (library) {
            *(void **)&send_state = dlsym(library, "sd_notifyf");
            *(void **)&watchdog_enabled = dlsym(library, "sd_watchdog_enabled");
        }
    }
    return send_state && watchdog_enabled;
}

static void tell(const char *key, const char *value)
{
    if (is_heard()) {
        (void)send_state(0, "%s=%s", key, value);
    }
}

span notify_interval(void)
{
    uint64_t usec = 0;
    bool is_wanted = is_heard() && watchdog_enabled(0, &usec) > 0;
    return is_wanted ? SPAN_US(usec / 2) : SPAN_NS(0);
}

#else

static void tell(const char *key, const char *value)
{
    (void)key;
    (void)value;
}

span notify_interval(void)
{
    return SPAN_NS(0);
}
#endif

void notify_ready(void)
{
    tell("READY", "1");
}

void notify_stopping(void)
{
    tell("STOPPING", "1");
}

void notify_status(const char *text)
{
    tell("STATUS", text);
}

void notify_alive(void)
{
    tell("WATCHDOG", "1");
}
