#include "cli/job_body.h"

#include "base/json_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN_VARIABLES = 2 };

/* CDPATH would make another folder of a relative one. */
static const char *const go_to_folder[] = {
    "/bin/sh", "-c", "CDPATH= cd -- \"$1\" || exit 126; shift; exec \"$@\"", "sh"};

enum { FOLDER_WORDS = sizeof(go_to_folder) / sizeof(go_to_folder[0]) + 1 };

void job_body_fini(struct job_body *body)
{
    for (char **at = body->variables; at && *at; at++) {
        free(*at);
    }
    free((void *)body->variables);
    free((void *)body->argv);
    json_decref(body->json);
}

static int read_argv(struct job_body *body, const char *folder, struct baton_error *reterr)
{
    const json_t *argv = json_object_get(body->json, "argv");
    size_t count = json_array_size(argv), used = 0;

    body->argv = calloc(count + FOLDER_WORDS + 1, sizeof(*body->argv));
    if (!body->argv) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (folder) {
        memcpy((void *)body->argv, (const void *)go_to_folder, sizeof(go_to_folder));
        body->argv[FOLDER_WORDS - 1] = (char *)folder;
        used = FOLDER_WORDS;
    }
    for (size_t i = 0; i < count; i++) {
        const char *word = json_string_value(json_array_get(argv, i));

        if (!word) {
            return error_set(reterr, BATON_EINVAL, "the item's body: \"argv\"[%zu] is no text", i);
        }
        body->argv[used++] = (char *)word;
    }
    return count > 0 ? BATON_OK
                     : error_set(reterr, BATON_EINVAL,
                                 "the item's body is no command: it must be like "
                                 "{\"argv\": [\"CMD\", \"ARG\"]}");
}

static int add_variable(struct job_body *body, size_t *used, const char *name, const char *value,
                        struct baton_error *reterr)
{
    if (asprintf(&body->variables[*used], "%s=%s", name, value) < 0) {
        body->variables[*used] = NULL;
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    (*used)++;
    return BATON_OK;
}

static int read_variables(struct job_body *body, const char *item, uint32_t attempt,
                          struct baton_error *reterr)
{
    json_t *env = json_object_get(body->json, "env"), *value;
    char number[16];
    size_t used = 0;
    const char *name;
    int code = BATON_OK;

    body->variables = calloc(json_object_size(env) + OWN_VARIABLES + 1, sizeof(*body->variables));
    if (!body->variables) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    json_object_foreach(env, name, value)
    {
        if (!*name || strchr(name, '=') || !json_is_string(value)) {
            return error_set(reterr, BATON_EINVAL,
                             "the item's body: \"env\": \"%.60s\" is no name of a variable, or its "
                             "value is no text",
                             name);
        }
        code = code ? code : add_variable(body, &used, name, json_string_value(value), reterr);
    }
    (void)snprintf(number, sizeof(number), "%u", attempt);
    code = code ? code : add_variable(body, &used, "BATON_ITEM", item, reterr);
    return code ? code : add_variable(body, &used, "BATON_ATTEMPT", number, reterr);
}

int job_body_read(struct job_body *body, const struct work_item *item, uint32_t attempt,
                  struct baton_error *reterr)
{
    const json_t *folder, *env;
    int code;

    body->json = json_load_bytes((const char *)item->body, item->body_bytes, 0, NULL);
    folder = json_object_get(body->json, "dir");
    env = json_object_get(body->json, "env");
    if ((folder && !json_is_string(folder)) || (env && !json_is_object(env))) {
        return error_set(reterr, BATON_EINVAL,
                         "the item's body: \"dir\" must be a text, and \"env\" an object");
    }
    code = read_argv(body, json_string_value(folder), reterr);
    return code ? code : read_variables(body, item->id, attempt, reterr);
}
