#include "detector/reconcile.h"

#include <string.h>

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Where there is no stream, the pictures are those of the camera itself. */
static bool same_camera(const struct subscription *from, const struct subscription *to)
{
    return same_text(from->rtsp_url, to->rtsp_url) &&
           (to->rtsp_url[0] != '\0' || same_text(from->snapshot_url, to->snapshot_url));
}

unsigned subscription_changes(const struct subscription *from, const struct subscription *to)
{
    unsigned changes = 0;

    if (!same_camera(from, to)) {
        changes |= CHANGE_CAMERA;
    }
    if (!same_text(from->snapshot_url, to->snapshot_url) ||
        from->snapshot_interval_ms != to->snapshot_interval_ms) {
        changes |= CHANGE_SNAPSHOT;
    }
    if (from->model_id != to->model_id || !same_text(from->model_name, to->model_name)) {
        changes |= CHANGE_MODEL;
    }
    if (!same_text(from->model_url, to->model_url)) {
        changes |= CHANGE_MODEL_URL;
    }
    if (!crop_equal(&from->crop, &to->crop)) {
        changes |= CHANGE_CROP;
    }
    return changes;
}

/* The index of `identifier`, or `count`. A list is mostly sent again in its old order: `guess`. */
static size_t find(const struct subscription *list, size_t count, const char *identifier,
                   size_t guess)
{
    if (guess < count && strcmp(list[guess].identifier, identifier) == 0) {
        return guess;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].identifier, identifier) == 0) {
            return i;
        }
    }
    return count;
}

size_t reconcile(const struct subscription *current, size_t current_count,
                 const struct subscription *wanted, size_t wanted_count, struct step *steps)
{
    size_t count = 0;

    for (size_t i = 0; i < current_count; i++) {
        if (find(wanted, wanted_count, current[i].identifier, i) == wanted_count) {
            steps[count++] = (struct step){.type = STEP_REMOVE, .current = i};
        }
    }
    for (size_t i = 0; i < wanted_count; i++) {
        size_t at = find(current, current_count, wanted[i].identifier, i);
        if (at == current_count) {
            steps[count++] = (struct step){.type = STEP_ADD, .wanted = i};
        } else {
            unsigned changes = subscription_changes(&current[at], &wanted[i]);
            steps[count++] = (struct step){.type = changes != 0 ? STEP_UPDATE : STEP_KEEP,
                                           .changes = changes,
                                           .current = at,
                                           .wanted = i};
        }
    }
    return count;
}
