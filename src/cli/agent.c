/* `baton agent`: serves the elections of a group to the processes of this host. */
#include "agent/agent.h"
#include "cli/command.h"
#include "cli/reload.h"
#include "cli/settings.h"
#include "guardian/fatal.h"
#include "member/member.h"
#include "options/notify.h"
#include "options/program.h"
#include "options/serve.h"

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct host {
    uv_loop_t loop;
    struct serve serve;
    const struct options *options;
    struct logger *logger;
    struct settings settings;
    struct member *member;
    struct reload reload;
    struct access *access;
    struct agent *agent;
    char name[BATON_NAME_MAX];
    char path[LOCAL_PATH_MAX];
    bool is_closing;
    struct baton_error failure; /* of the provider; code 0: none */
};

/* ---- The end --------------------------------------------------------------------------------- */

static void on_member_closed(void *userdata)
{
    struct host *host = userdata;

    serve_end(&host->serve);
}

static void on_agent_closed(void *userdata)
{
    struct host *host = userdata;

    member_close(host->member, on_member_closed, host);
}

static void close_host(struct host *host)
{
    if (!host->is_closing) {
        host->is_closing = true;
        notify_stopping();
        log_notice(host->logger, "stops");
        agent_close(host->agent, on_agent_closed, host);
    }
}

/* Comes from within the provider. */
static void on_failed(void *userdata, const struct baton_error *error)
{
    struct host *host = userdata;

    if (host->failure.code == BATON_OK) {
        host->failure = *error;
        if (error->code != BATON_EUNSAFE && error->code != BATON_EAUTH) {
            host->failure.code = BATON_EIO;
        }
        uv_stop(&host->loop);
    }
}

/* ---- Signals --------------------------------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
    struct host *host = handle->data;

    if (number != SIGHUP) {
        close_host(host);
    } else if (!host->is_closing) {
        reload_begin(&host->reload, true);
    }
}

/* ---- The beginning --------------------------------------------------------------------------- */

static int name_host(struct host *host, struct baton_error *reterr)
{
    char space[BATON_NAME_MAX];
    const char *name = settings_node(space, host->options);
    char machine[256] = "";

    (void)gethostname(machine, sizeof(machine) - 1);
    name = name ? name : machine;
    if (strlen(name) >= sizeof(host->name) || !*name) {
        return error_set(reterr, BATON_EINVAL, "--node '%s': must have 1 to %d bytes", name,
                         BATON_NAME_MAX - 1);
    }
    (void)snprintf(host->name, sizeof(host->name), "%s", name);
    return BATON_OK;
}

static int read_place(struct host *host, struct listener_place *ret, struct baton_error *reterr)
{
    const char *mode = options_text(host->options, "socket-mode");
    const char *group = options_text(host->options, "socket-group");
    /* cppcheck-suppress getgrnamCalled; there is one thread yet */
    const struct group *found = group ? getgrnam(group) : NULL;
    char *end = NULL;
    unsigned long bits = strtoul(mode, &end, 8);

    local_agent_path(host->path, options_text(host->options, "socket"), true);
    if (*end != '\0' || end == mode || bits > 0777) {
        return error_set(reterr, BATON_EINVAL,
                         "--socket-mode %s: must be permissions in octal, as 0660", mode);
    }
    if (group && !found) {
        return error_set(reterr, BATON_EINVAL, "--socket-group %s: there is no such group", group);
    }
    *ret = (struct listener_place){
        .path = host->path, .mode = (mode_t)bits, .group = found ? found->gr_gid : (gid_t)-1};
    return BATON_OK;
}

static int read_access(struct host *host, struct baton_error *reterr)
{
    struct option_cursor cursor = {0};
    int code = BATON_OK;

    while (!code && options_next(host->options, &cursor)) {
        if (strcmp(cursor.spec->name, "allow") == 0) {
            code = access_add(&host->access, cursor.text, reterr);
        }
    }
    return code ? error_wrap(reterr, "--allow") : BATON_OK;
}

/* The folder of the default path may not be there yet; of a given one it must be. */
static int make_folder(const struct host *host, struct baton_error *reterr)
{
    char copy[LOCAL_PATH_MAX];
    const char *folder;

    (void)snprintf(copy, sizeof(copy), "%s", host->path);
    folder = dirname(copy);
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
        return error_set(reterr, errno == EACCES ? BATON_EAUTH : BATON_EINVAL,
                         "--socket %s: its folder cannot be made: %s", host->path, strerror(errno));
    }
    return BATON_OK;
}

/* The processes share what they take part in. A group of agents has many elections, so it needs a
 * name. So does a memory, since each process opens it anew: one without a name is its own. */
static void name_group(struct settings *settings, const struct options *options)
{
    const char *url = settings->config.url;

    if (strcmp(url, "memory:") == 0) {
        settings->config.url = "memory:agent";
    }
    if (!options_is_set(options, "group") && !strstr(url, "group=")) {
        settings_add(settings, "group", "default");
    }
}

static int open_host(struct host *host, struct baton_error *reterr)
{
    struct agent_config config = {.loop = &host->loop,
                                  .logger = host->logger,
                                  .provider_config = &host->settings.config,
                                  .name = host->name,
                                  .client_lease = options_duration(host->options, "client-lease")};
    int code = name_host(host, reterr);

    code = code ? code : read_place(host, &config.place, reterr);
    code = code ? code : read_access(host, reterr);
    code = code ? code : make_folder(host, reterr);
    code = code ? code : settings_read(&host->settings, host->options, reterr);
    if (code) {
        return code;
    }
    name_group(&host->settings, host->options);
    host->settings.config.loop = &host->loop;
    host->settings.config.logger = host->logger;
    host->settings.config.node = host->name;
    host->settings.config.on_failed = on_failed;
    host->settings.config.userdata = host;
    code = member_open(&host->member, &host->settings.config, reterr);
    if (code) {
        return code;
    }
    config.provider = member_provider(host->member);
    config.access = host->access;
    return agent_open(&host->agent, &config, reterr);
}

static int run(struct host *host, struct baton_error *reterr)
{
    struct baton_error error;

    host->reload = (struct reload){.options = host->options,
                                   .logger = host->logger,
                                   .member = host->member,
                                   .agent = host->agent};
    serve_begin(&host->serve, &host->loop, SERVE_SIGNALS, on_signal, host);
    if (fatal_install(&error)) {
        log_warning(host->logger, "no-fatal-handlers");
    }
    log_notice(host->logger, "serves", LOG_STR("socket", host->path),
               LOG_STR("provider", member_scheme(host->member)));
    notify_ready();
    if (reload_was_held()) {
        reload_begin(&host->reload, true);
    }
    (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    if (host->failure.code) {
        close_host(host);
        (void)uv_run(&host->loop, UV_RUN_DEFAULT);
        *reterr = host->failure;
    }
    return host->failure.code;
}

static void discard(void *userdata)
{
    (void)userdata;
}

static int serve(struct host *host, struct baton_error *reterr)
{
    int code = open_host(host, reterr);

    if (!code) {
        code = run(host, reterr);
    } else {
        if (host->member) {
            member_close(host->member, discard, NULL);
        }
        (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    }
    agent_free(host->agent);
    access_free(host->access);
    member_free(host->member);
    settings_fini(&host->settings);
    return code;
}

int agent_main(const struct invocation *invocation)
{
    struct host host = {.options = invocation->options};
    struct baton_error error = {0};
    int code;

    host.logger = program_logger(invocation->options);
    (void)serve_prepare(); /* each client is two descriptors */
    reload_hold();
    (void)prctl(PR_SET_DUMPABLE, 0);
    code = command_open_loop(&host.loop, &error);
    if (!code) {
        code = serve(&host, &error);
        (void)uv_loop_close(&host.loop);
    }
    logger_free(host.logger);
    error.code = exit_code_local_error(error.code);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}
