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
    if (!same_text(from->snapshot_url, to->snapshot_url)) {
        changes |= CHANGE_SNAPSHOT;
    }
    if (from->snapshot_interval_ms != to->snapshot_interval_ms) {
        changes |= CHANGE_INTERVAL;
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

size_t subscription_find(const struct subscription *list, size_t count, const char *identifier,
                         size_t guess)
{
    size_t i = 0;

    if (guess < count && strcmp(list[guess].identifier, identifier) == 0) {
        return guess;
    }
    while (i < count && strcmp(list[i].identifier, identifier) != 0) {
        i++;
    }
    return i;
}
