/* Describes a camera in /status. */
#include "detector/program/program.h"

static json_t *source_json(const struct camera_stats *stats)
{
    const struct camera_fps *fps = &stats->fps;

    return json_pack(
        "{s:b, s:s, s:s, s:i, s:i, s:f, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s*, "
        "s:{s:f, s:f, s:f, s:f}}",
        "online", (int)stats->is_online, "codec", stats->codec, "hardware", stats->hardware,
        "width", stats->width, "height", stats->height, "nominal_fps", stats->nominal_fps,
        "subscribers", (int)stats->subscribers, "received", (json_int_t)stats->received, "decoded",
        (json_int_t)stats->decoded, "dropped", (json_int_t)stats->dropped, "shown",
        (json_int_t)stats->shown, "skipped", (json_int_t)stats->skipped, "still",
        (json_int_t)stats->still, "restarts", (json_int_t)stats->restarts, "last_error",
        stats->last_error[0] ? stats->last_error : NULL, "fps", "received", fps->received,
        "decoded", fps->decoded, "dropped", fps->dropped, "shown", fps->shown);
}

void program_describe_camera(const struct watch *watch, const char *identifier, json_t *ret)
{
    struct camera_stats stats;

    if (watch_stats(watch, identifier, IMAGE_STREAM, &stats)) {
        (void)json_object_set_new(ret, "stream", source_json(&stats));
    }
    if (watch_stats(watch, identifier, IMAGE_SNAPSHOT, &stats)) {
        (void)json_object_set_new(ret, "snapshots", source_json(&stats));
    }
}
