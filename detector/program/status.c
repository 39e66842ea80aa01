/* Describes a camera in /status. */
#include "detector/program/program.h"

static json_t *fps_json(const struct rates *rates, const char *identifier)
{
    double fps[RATE_COUNT];

    rates_of(rates, identifier, fps);
    return json_pack("{s:f, s:f, s:f, s:f}", "received", fps[RATE_RECEIVED], "decoded",
                     fps[RATE_DECODED], "dropped", fps[RATE_DROPPED], "shown", fps[RATE_SHOWN]);
}

static json_t *source_json(const struct camera_stats *stats)
{
    return json_pack("{s:b, s:s, s:s, s:i, s:i, s:f, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s*}",
                     "online", (int)stats->is_online, "codec", stats->codec, "hardware",
                     stats->hardware, "width", stats->width, "height", stats->height, "nominal_fps",
                     stats->nominal_fps, "subscribers", (int)stats->subscribers, "received",
                     (json_int_t)stats->received, "decoded", (json_int_t)stats->decoded, "dropped",
                     (json_int_t)stats->dropped, "shown", (json_int_t)stats->shown, "skipped",
                     (json_int_t)stats->skipped, "still", (json_int_t)stats->still, "restarts",
                     (json_int_t)stats->restarts, "last_error",
                     stats->last_error[0] ? stats->last_error : NULL);
}

void program_describe_camera(const struct watch *watch, const struct rates *rates,
                             const char *identifier, json_t *ret)
{
    struct camera_stats stats;

    if (watch_stats(watch, identifier, IMAGE_STREAM, &stats)) {
        json_t *stream = source_json(&stats);
        (void)json_object_set_new(stream, "fps", fps_json(rates, identifier));
        (void)json_object_set_new(ret, "stream", stream);
    }
    if (watch_stats(watch, identifier, IMAGE_SNAPSHOT, &stats)) {
        (void)json_object_set_new(ret, "snapshots", source_json(&stats));
    }
}
