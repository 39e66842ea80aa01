#include "detector/displays.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

void displays_free(struct display *displays)
{
    struct display *display = displays, *next;

    HASH_CLEAR(hh, displays);
    for (; display != NULL; display = next) {
        next = display->hh.next;
        free(display);
    }
}

const struct display *displays_of(const struct display *displays, const char *identifier)
{
    struct display *display;

    HASH_FIND(hh, displays, identifier, strcspn(identifier, ";"), display);
    return display;
}

/* The display, made if there is none. NULL with the error: no room. */
static struct display *need(struct display **displays, const char *name, struct baton_error *reterr)
{
    size_t bytes = strlen(name);
    struct display *display;

    HASH_FIND(hh, *displays, name, bytes, display);
    if (display != NULL) {
        return display;
    }
    if (HASH_COUNT(*displays) == DISPLAYS_MAX) {
        (void)error_set(reterr, BATON_ETOOBIG,
                        "display \"%s\": %d displays have a session or stage already; clear one",
                        name, DISPLAYS_MAX);
        return NULL;
    }
    display = calloc(1, sizeof(*display) + bytes + 1);
    if (display == NULL) {
        (void)error_set(reterr, BATON_ENOMEM, "out of memory for a display");
        return NULL;
    }
    memcpy(display->name, name, bytes);
    HASH_ADD_KEYPTR(hh, *displays, display->name, bytes, display);
    return display;
}

int displays_set(struct display **displays, const struct command *command, bool *ret_is_other,
                 struct baton_error *reterr)
{
    struct display *display = need(displays, command->display, reterr);

    if (display == NULL) {
        return reterr->code;
    }
    if (command->type == COMMAND_SET_SESSION_ID) {
        *ret_is_other = display->session.is_set != command->session.is_set ||
                        display->session.id != command->session.id;
        display->session = command->session;
    } else {
        *ret_is_other = display->stage != command->stage;
        display->stage = command->stage;
    }
    if (!display->session.is_set && display->stage == STAGE_NONE) { /* as good as unknown */
        HASH_DEL(*displays, display);
        free(display);
    }
    return 0;
}
