/* `baton fleet VERB`: what a person or a script asks of a detector fleet, and changes in it. */
#include "cli/fleet.h"

#include "base/value.h"
#include "cli/interrupt.h"

#include <string.h>

enum { PATH_ROOM = 2048 };

#define SESSION_MAX (INT64_C(1) << 53) /* what JSON of any program has as an integer */

/* ---- Changes --------------------------------------------------------------------------------- */

static int change(const struct invocation *invocation, struct fleet_link *link, const char *method,
                  const char *before, const char *id, const char *after, json_t *body)
{
    struct baton_error error = {0};
    char path[PATH_ROOM];
    int code = fleet_path(path, sizeof(path), before, id, after, &error);

    code = code ? code : fleet_ask(link, method, path, body, NULL, &error);
    json_decref(body);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}

/* The verb is the last segment of the path. */
static int set_worker(const struct invocation *invocation, struct fleet_link *link)
{
    char action[32];
    int result = EXIT_OK;

    (void)snprintf(action, sizeof(action), "/%s", invocation->argv[0]);
    for (int i = 1; result == EXIT_OK && i < invocation->argc; i++) {
        result =
            change(invocation, link, "POST", "/api/workers/", invocation->argv[i], action, NULL);
    }
    return result;
}

static int move(const struct invocation *invocation, struct fleet_link *link)
{
    return change(invocation, link, "POST", "/api/workers/", invocation->argv[2], "/move",
                  json_pack("{s:s}", "subscription", invocation->argv[1]));
}

/* Of "none" the value is null. */
static int session(const struct invocation *invocation, struct fleet_link *link)
{
    const char *text = invocation->argv[2];
    bool is_none = strcmp(text, "none") == 0;
    struct baton_error error = {0};
    int64_t number = 0;

    if (!is_none && value_number(text, 0, SESSION_MAX, &number, &error) != BATON_OK) {
        (void)error_wrap(&error, "SESSION (or none)");
        return command_fail(invocation, &error);
    }
    return change(invocation, link, "PUT", "/api/displays/", invocation->argv[1], "/session",
                  json_pack("{s:o}", "sessionId", is_none ? json_null() : json_integer(number)));
}

static int stage(const struct invocation *invocation, struct fleet_link *link)
{
    const char *text = invocation->argv[2];

    return change(invocation, link, "PUT", "/api/displays/", invocation->argv[1], "/stage",
                  json_pack("{s:o}", "progressionStage",
                            strcmp(text, "none") == 0 ? json_null() : json_string(text)));
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static const struct verb {
    const char *name, *arguments;
    int least, most; /* arguments after it; -1: any number */
    int (*run)(const struct invocation *invocation, struct fleet_link *link);
} verbs[] = {
    {"status", "no argument", 0, 0, fleet_status},
    {"workers", "no argument", 0, 0, fleet_workers},
    {"cameras", "no argument", 0, 0, fleet_cameras},
    {"displays", "no argument", 0, 0, fleet_displays},
    {"apply", "FILE", 1, 1, fleet_apply},
    {"cordon", "WORKER ...", 1, -1, set_worker},
    {"uncordon", "WORKER ...", 1, -1, set_worker},
    {"drain", "WORKER ...", 1, -1, set_worker},
    {"undrain", "WORKER ...", 1, -1, set_worker},
    {"move", "SUBSCRIPTION WORKER", 2, 2, move},
    {"session", "DISPLAY SESSION, or DISPLAY none", 2, 2, session},
    {"stage", "DISPLAY STAGE, or DISPLAY none", 2, 2, stage},
    {"tail", "no argument", 0, 0, fleet_tail},
};

static const struct verb *find(const struct invocation *invocation, struct baton_error *reterr)
{
    const char *name = invocation->argv[0];
    int given = invocation->argc - 1;

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            if (given >= verbs[i].least && (verbs[i].most < 0 || given <= verbs[i].most)) {
                return &verbs[i];
            }
            (void)error_set(reterr, BATON_EINVAL, "%s takes %s", name, verbs[i].arguments);
            return NULL;
        }
    }
    (void)error_set(reterr, BATON_EINVAL,
                    "'%s': must be status, workers, cameras, displays, apply, cordon, uncordon, "
                    "drain, undrain, move, session, stage or tail",
                    name);
    return NULL;
}

int fleet_main(const struct invocation *invocation)
{
    struct baton_error error = {0};
    struct fleet_link link;
    const struct verb *verb = find(invocation, &error);
    int result;

    if (!verb || fleet_link_open(&link, invocation->options, &error) != BATON_OK) {
        return command_fail(invocation, &error);
    }
    result = verb->run(invocation, &link);
    fleet_link_close(&link);
    return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal() : result;
}
