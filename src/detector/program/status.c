/* What a camera says of itself, for people. */
#include "detector/program/program.h"

static json_t *fps_json(const struct rates *rates, const char *identifier)
{
    struct rate_figures figures = rates_of(rates, identifier);

    return json_pack("{s:f, s:f, s:f, s:f}", "received", figures.received, "decoded",
                     figures.decoded, "dropped", figures.dropped, "shown", figures.shown);
}

void program_describe_camera(const struct watch *watch, const struct rates *rates,
                             const char *identifier, json_t *ret)
{
    const struct camera *camera = watch_camera(watch, identifier);
    struct camera_stats stats;
    json_t *stream;

    if (!camera) {
        return;
    }
    camera_stats(camera, &stats);
    stream = json_pack(
        "{s:s, s:s, s:i, s:i, s:f, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:s*}", "codec",
        stats.codec, "hardware", stats.hardware, "width", stats.width, "height", stats.height,
        "nominal_fps", stats.nominal_fps, "subscribers", (int)stats.subscribers, "received",
        (json_int_t)stats.received, "decoded", (json_int_t)stats.decoded, "dropped",
        (json_int_t)stats.dropped, "shown", (json_int_t)stats.shown, "skipped",
        (json_int_t)stats.skipped, "still", (json_int_t)stats.still, "restarts",
        (json_int_t)stats.restarts, "fps", fps_json(rates, identifier), "last_error",
        stats.last_error[0] ? stats.last_error : NULL);
    (void)json_object_set_new(ret, "stream", stream);
}
