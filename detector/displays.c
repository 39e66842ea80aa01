#include "detector/displays.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

void displays_fini(struct displays *displays)
{
    while (displays->count > 0) {
        free(displays->all[--displays->count].name);
    }
}

const struct display *displays_of(const struct displays *displays, const char *identifier)
{
    for (size_t i = 0; i < displays->count; i++) {
        if (identifier_has_display(identifier, displays->all[i].name)) {
            return &displays->all[i];
        }
    }
    return NULL;
}

static struct display *find(struct displays *displays, const char *name)
{
    for (size_t i = 0; i < displays->count; i++) {
        if (strcmp(displays->all[i].name, name) == 0) {
            return &displays->all[i];
        }
    }
    return NULL;
}

/* The display, made if there is none. NULL with the error: no room. */
static struct display *need(struct displays *displays, const char *name, struct baton_error *reterr)
{
    struct display *display = find(displays, name);

    if (display != NULL) {
        return display;
    }
    if (displays->count == DISPLAYS_MAX) {
        (void)error_set(reterr, BATON_ETOOBIG,
                        "display \"%s\": %d displays have a session or stage already; clear one",
                        name, DISPLAYS_MAX);
        return NULL;
    }
    display = &displays->all[displays->count];
    *display = (struct display){.name = strdup(name)};
    if (display->name == NULL) {
        (void)error_set(reterr, BATON_ENOMEM, "out of memory for a display");
        return NULL;
    }
    displays->count++;
    return display;
}

/* A display without session and stage is as good as unknown. */
static void release_if_empty(struct displays *displays, struct display *display)
{
    if (!display->session.is_set && display->stage == STAGE_NONE) {
        free(display->name);
        *display = displays->all[--displays->count];
    }
}

int displays_set_session(struct displays *displays, const char *name, struct session_id session,
                         bool *ret_is_other, struct baton_error *reterr)
{
    struct display *display = need(displays, name, reterr);

    if (display == NULL) {
        return reterr->code;
    }
    *ret_is_other = display->session.is_set != session.is_set || display->session.id != session.id;
    display->session = session;
    release_if_empty(displays, display);
    return 0;
}

int displays_set_stage(struct displays *displays, const char *name, enum stage stage,
                       bool *ret_is_other, struct baton_error *reterr)
{
    struct display *display = need(displays, name, reterr);

    if (display == NULL) {
        return reterr->code;
    }
    *ret_is_other = display->stage != stage;
    display->stage = stage;
    release_if_empty(displays, display);
    return 0;
}
