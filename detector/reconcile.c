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
    bool is_same_model =
        from->model_id == to->model_id && same_text(from->model_name, to->model_name);

    return (same_camera(from, to) ? 0 : CHANGE_CAMERA) |
           (same_text(from->snapshot_url, to->snapshot_url) ? 0 : CHANGE_SNAPSHOT) |
           (from->snapshot_interval_ms == to->snapshot_interval_ms ? 0 : CHANGE_INTERVAL) |
           (is_same_model ? 0 : CHANGE_MODEL) |
           (same_text(from->model_url, to->model_url) ? 0 : CHANGE_MODEL_URL) |
           (crop_equal(&from->crop, &to->crop) ? 0 : CHANGE_CROP);
}
