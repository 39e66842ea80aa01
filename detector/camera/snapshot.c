#include "detector/camera/snapshot.h"

#include "base/buffer.h"
#include "base/error.h"
#include "detector/camera/trust.h"

#include <curl/curl.h>
#include <malloc.h>
#include <turbojpeg.h>

enum {
    RARE_MS =
        1000, /* snapshots so far apart leave no memory in use between them but the newest's */
    SETTLE_MS = 200, /* by then the parent has the newest, and has let go of the one before */
};

struct poller {
    struct publisher *publisher;
    CURL *curl;
    tjhandle jpeg;
    struct buffer body;
    char details[CURL_ERROR_SIZE];
    AVFrame *frame;
    bool is_opened;
};

static size_t take_body(char *bytes, size_t one, size_t count, void *userdata)
{
    struct poller *poller = userdata;

    buffer_put(&poller->body, bytes, one * count);
    return poller->body.failed ? 0 : one * count;
}

static int look_up(void *userdata, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                   curl_off_t up)
{
    const struct poller *poller = userdata;

    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    publisher_tick(poller->publisher, clock_now());
    return poller->publisher->is_stopping;
}

static int set_up(struct poller *poller, const struct camera_config *config)
{
    CURL *curl = poller->curl;
    CURLcode rc = curl_easy_setopt(curl, CURLOPT_URL, config->url);

    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    /* A redirect could lead to an address that the broker refuses; cameras do not need redirects.
     */
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC | CURLAUTH_DIGEST);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)config->options.stall_ms);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_MAXFILESIZE, (long)SNAPSHOT_BYTES_MAX);
    rc = rc ? rc : trust_set_up(curl, config, poller->details);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_WRITEDATA, poller);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_up);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_XFERINFODATA, poller);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    return rc == CURLE_OK ? 0 : BATON_ENOMEM;
}

static int fetch(struct poller *poller, struct baton_error *reterr)
{
    long status = 0;
    CURLcode rc;

    buffer_init(&poller->body, SNAPSHOT_BYTES_MAX);
    rc = curl_easy_perform(poller->curl);
    if (poller->body.failed || rc == CURLE_FILESIZE_EXCEEDED) {
        return error_set(reterr, BATON_ETOOBIG, "snapshot: above %d bytes", SNAPSHOT_BYTES_MAX);
    }
    if (rc == CURLE_ABORTED_BY_CALLBACK) {
        return error_set(reterr, BATON_ECANCELED, "snapshot: stopped");
    }
    if (rc != CURLE_OK) {
        (void)trust_failed(rc, poller->details, reterr);
        return error_wrap(reterr, "snapshot");
    }
    (void)curl_easy_getinfo(poller->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 401 || status == 403) {
        return error_set(reterr, BATON_EAUTH, "snapshot: the camera refuses name or password");
    }
    if (status != 200) {
        return error_set(reterr, status == 404 ? BATON_ENOENT : BATON_EIO,
                         "snapshot: the camera answers %ld in place of 200", status);
    }
    return 0;
}

/* Version 3 of the library knows one more, which FFmpeg does not. */
static const enum AVPixelFormat formats[] = {
    [TJSAMP_420] = AV_PIX_FMT_YUVJ420P, [TJSAMP_422] = AV_PIX_FMT_YUVJ422P,
    [TJSAMP_440] = AV_PIX_FMT_YUVJ440P, [TJSAMP_444] = AV_PIX_FMT_YUVJ444P,
    [TJSAMP_411] = AV_PIX_FMT_YUVJ411P, [TJSAMP_GRAY] = AV_PIX_FMT_GRAY8,
};

static int bad_jpeg(const struct poller *poller, struct baton_error *reterr)
{
    return error_set(reterr, BATON_EPROTO, "snapshot of %zu bytes: no JPEG that can be decoded: %s",
                     poller->body.bytes, tjGetErrorStr2(poller->jpeg));
}

/* The library gives a warning and a picture for a JPEG with a damaged end; it is an error here. */
static int decompress(struct poller *poller, struct baton_error *reterr)
{
    AVFrame *frame = poller->frame;
    int rc, width, height, subsampling, colours;
    struct ring_layout layout;

    if (tjDecompressHeader3(poller->jpeg, poller->body.data, poller->body.bytes, &width, &height,
                            &subsampling, &colours) != 0) {
        return bad_jpeg(poller, reterr);
    }
    rc = ring_layout(&layout, (uint32_t)width, (uint32_t)height, reterr);
    if (rc != 0) {
        return rc;
    }
    if (subsampling < 0 || subsampling >= (int)(sizeof(formats) / sizeof(formats[0]))) {
        return error_set(reterr, BATON_ENOTSUP, "snapshot: its sampling of colours is unknown");
    }
    av_frame_unref(frame);
    frame->width = width;
    frame->height = height;
    frame->format = formats[subsampling];
    frame->color_range = AVCOL_RANGE_JPEG;
    if (!(subsampling == TJSAMP_420 && slots_take(&poller->publisher->slots, &layout, frame)) &&
        av_frame_get_buffer(frame, 0) < 0) {
        return error_set(reterr, BATON_ENOMEM, "snapshot of %dx%d: out of memory", width, height);
    }
    if (tjDecompressToYUVPlanes(poller->jpeg, poller->body.data, poller->body.bytes, frame->data, 0,
                                frame->linesize, 0, 0) != 0) {
        return bad_jpeg(poller, reterr);
    }
    return 0;
}

static void tell_opened(struct poller *poller)
{
    struct camera_message message = {.type = MESSAGE_OPENED,
                                     .width = (uint32_t)poller->frame->width,
                                     .height = (uint32_t)poller->frame->height,
                                     .codec = "jpeg"};

    (void)publisher_send(poller->publisher, &message);
}

static int poll_once(struct poller *poller, struct baton_error *reterr)
{
    instant captured;
    int rc = fetch(poller, reterr);

    if (rc != 0) {
        return rc;
    }
    captured = clock_now();
    poller->publisher->counts.received++;
    rc = decompress(poller, reterr);
    if (rc == 0 && !poller->is_opened) {
        poller->is_opened = true;
        tell_opened(poller);
    }
    if (rc == 0) {
        poller->publisher->pace = (struct pace){0}; /* the requests have the pace already */
        rc = publisher_show(poller->publisher, poller->frame, INT64_MIN, captured, reterr);
    }
    return rc;
}

static void give_memory_back(struct poller *poller)
{
    av_frame_unref(poller->frame);
    buffer_fini(&poller->body);
    if (poller->publisher->interval.ns >= SPAN_MS(RARE_MS).ns) {
        (void)malloc_trim(0);
        publisher_sleep(poller->publisher, clock_now(), &SPAN_MS(SETTLE_MS));
        slots_trim(&poller->publisher->slots, false);
    }
}

static int poll_on(struct poller *poller, struct baton_error *reterr)
{
    int rc = 0;

    while (rc == 0 && !poller->publisher->is_stopping) {
        instant asked_at = clock_now();
        rc = poll_once(poller, reterr);
        if (rc == 0) {
            give_memory_back(poller);
            publisher_sleep(poller->publisher, asked_at, &poller->publisher->interval);
        }
    }
    return poller->publisher->is_stopping ? 0 : rc;
}

int snapshot_run(const struct camera_config *config, struct publisher *publisher,
                 struct baton_error *reterr)
{
    struct poller poller = {.publisher = publisher,
                            .curl = curl_easy_init(),
                            .jpeg = tjInitDecompress(),
                            .frame = av_frame_alloc()};
    bool is_set_up = poller.curl != NULL && poller.jpeg != NULL && poller.frame != NULL &&
                     set_up(&poller, config) == 0;
    int rc = is_set_up ? poll_on(&poller, reterr)
                       : error_set(reterr, BATON_ENOMEM, "out of memory for snapshots");

    curl_easy_cleanup(poller.curl);
    if (poller.jpeg != NULL) {
        (void)tjDestroy(poller.jpeg);
    }
    av_frame_free(&poller.frame);
    buffer_fini(&poller.body);
    return rc;
}
