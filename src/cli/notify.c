#include "cli/notify.h"

#ifdef BATON_SYSTEMD
#include <systemd/sd-daemon.h>

void notify_ready(void)
{
    (void)sd_notify(0, "READY=1");
}

void notify_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1");
}

void notify_status(const char *text)
{
    (void)sd_notifyf(0, "STATUS=%s", text);
}

void notify_alive(void)
{
    (void)sd_notify(0, "WATCHDOG=1");
}

span notify_interval(void)
{
    uint64_t usec = 0;
    return sd_watchdog_enabled(0, &usec) > 0 ? SPAN_US(usec / 2) : SPAN_NS(0);
}

#else

void notify_ready(void)
{
}

void notify_stopping(void)
{
}

void notify_status(const char *text)
{
    (void)text;
}

void notify_alive(void)
{
}

span notify_interval(void)
{
    return SPAN_NS(0);
}
#endif
