#include "cli/reload.h"

#include "cli/settings.h"
#include "options/program.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void report(struct reload *reload, int code, const struct baton_error *error)
{
    bool is_wanted = reload->is_wanted;
    bool is_again = reload->is_again && code != BATON_ECANCELED;

    reload->is_wanted = reload->is_going = reload->is_again = false;
    explicit_bzero(reload->token, sizeof(reload->token));
    explicit_bzero(reload->url, sizeof(reload->url));
    if (code && code != BATON_ECANCELED) {
        log_error(reload->logger, "reload-refused", LOG_STR("reason", error->message),
                  LOG_STR("text", "nothing changes"));
    } else if (!code && is_wanted) {
        log_notice(reload->logger, "reloaded",
                   LOG_STR("text", "certificates, keys, tokens and passwords were read again; they "
                                   "count for new connections"));
    }
    if (is_again) {
        reload_begin(reload, true);
    }
}

static void on_reloaded(void *userdata, int code, const struct baton_error *error)
{
    struct reload *reload = userdata;
    struct baton_error own;

    if (!code && reload->http && reload->token[0]) {
        code = http_server_set_token(reload->http, reload->token, &own);
        error = &own;
    }
    if (!code && reload->agent) {
        agent_reload(reload->agent, reload->url);
    }
    report(reload, code, error);
}

static int read_token(struct reload *reload, struct baton_error *reterr)
{
    const char *token;

    return reload->http ? program_token(&token, reload->token, sizeof(reload->token),
                                        reload->options, "http-token-file", reterr)
                        : 0;
}

void reload_begin(struct reload *reload, bool is_wanted)
{
    char changed[256];
    struct baton_error error;
    int code;

    if (reload->is_going) { /* and may have read the files before they were changed once more */
        reload->is_again |= is_wanted;
        return;
    }
    reload->is_wanted = is_wanted;
    reload->is_going = true;
    code = settings_read_again(reload->url, changed, sizeof(changed), reload->options, &error);
    if (!code && changed[0] && reload->is_wanted) {
        log_warning(reload->logger, "restart-needed", LOG_STR("options", changed),
                    LOG_STR("text", "the file has other values than at the start: they count after "
                                    "a restart"));
    }
    code = code ? code : read_token(reload, &error);
    code = code ? code : member_reload(reload->member, reload->url, on_reloaded, reload, &error);
    if (code) {
        report(reload, code, &error);
    }
}

static volatile sig_atomic_t was_hung_up;

static void note_hangup(int number)
{
    (void)number;
    was_hung_up = 1;
}

void reload_hold(void)
{
    struct sigaction action = {.sa_handler = note_hangup, .sa_flags = SA_RESTART};

    (void)sigaction(SIGHUP, &action, NULL);
}

bool reload_was_held(void)
{
    return was_hung_up;
}

/* /dev/tty cannot be opened without one. */
bool reload_has_terminal(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}
