/* Pictures of cameras: the newest frame as JPEG, once, or again and again for a browser's <img>
 * (MJPEG).
 *
 * A viewer of a stream is sent the next part only when it has read the last one, and then gets the
 * newest frame. So a slow viewer sees fewer frames, holds one part, and slows no other client down;
 * all viewers of the same picture share one JPEG.
 */
#include "detector/service_int.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#define BOUNDARY "frame"

enum { STREAMS_MAX = 16 };

/* What a viewer gets to see now. */
struct view {
    struct frame *frame;
    struct image_shape shape;
    uint64_t boxes; /* the number of those in it; 0: none */
};

static void end_viewer(struct viewer *viewer)
{
    web_exchange_set(viewer->exchange, NULL);
    DL_DELETE(viewer->service->viewers, viewer);
    viewer->service->streams -= viewer->wanted.is_stream;
    free(viewer);
}

/* False: there is no frame of the camera. */
static bool find_view(const struct viewer *viewer, struct view *ret)
{
    const struct camera_question *wanted = &viewer->wanted;
    const struct images *images = viewer->images;
    const struct image_boxes *boxes =
        wanted->has_boxes ? image_boxes(images, wanted->source) : NULL;

    ret->frame = image_newest(images, wanted->source);
    if (ret->frame == NULL) {
        return false;
    }
    ret->boxes = boxes != NULL ? boxes->number : 0;
    image_shape(&ret->shape, ret->frame, wanted->is_cropped ? &images->subscription.crop : NULL,
                wanted->width, boxes);
    return true;
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* A cache may keep a picture but must ask again each time: the camera has newer ones. A 304 has no
 * length: it would be the picture's, which is not known. */
static void answer_image(struct viewer *viewer, const struct encoding *image)
{
    char headers[160];
    struct web_answer answer = {.status = image != NULL ? 200 : 304, .headers = headers};
    struct web_exchange *exchange = viewer->exchange;

    (void)snprintf(headers, sizeof(headers), "cache-control: no-cache\r\netag: %s\r\n",
                   viewer->tag);
    if (image != NULL) {
        answer.type = "image/jpeg";
        answer.body = image->jpeg;
        answer.bytes = image->bytes;
        viewer->service->images_served++;
    }
    end_viewer(viewer);
    web_answer(exchange, &answer);
}

static void refuse(struct viewer *viewer, unsigned status, const char *reason)
{
    struct web_exchange *exchange = viewer->exchange;

    end_viewer(viewer);
    web_refuse(exchange, status, reason);
}

static void send_part(struct viewer *viewer, const struct encoding *image)
{
    char head[128];
    int bytes = snprintf(
        head, sizeof(head),
        "--" BOUNDARY "\r\nContent-Type: image/jpeg\r\nContent-Length: %zu\r\n\r\n", image->bytes);

    viewer->is_reading = false;
    viewer->service->parts_served++;
    web_part(viewer->exchange, head, (size_t)bytes);
    web_part(viewer->exchange, image->jpeg, image->bytes);
    web_part(viewer->exchange, "\r\n", 2);
}

/* A stream skips what cannot be made: another frame follows. */
static void fail(struct viewer *viewer, const struct baton_error *error)
{
    if (!viewer->wanted.is_stream) {
        refuse(viewer, error->code == BATON_EUNAVAILABLE ? 503 : 500, error->message);
    }
}

static void give(struct viewer *viewer, const struct encoding *image)
{
    viewer->awaited = NULL;
    if (image->jpeg == NULL) {
        fail(viewer, &image->error);
    } else if (viewer->wanted.is_stream) {
        send_part(viewer, image);
    } else {
        answer_image(viewer, image);
    }
}

/* What is not made yet comes by service_picture_made(). */
static void ask(struct viewer *viewer, const struct view *view)
{
    const struct encoding *image;
    struct baton_error error;
    int rc = image_ask(&viewer->service->images, view->frame, &view->shape, &image, &error);

    if (rc == 0) {
        give(viewer, image);
    } else if (rc == BATON_EBUSY) {
        viewer->awaited = image;
    } else {
        fail(viewer, &error);
    }
}

/* ---- One picture ----------------------------------------------------------------------------- */

/* Pictures of another run of this program need other tags, and so do other shapes. */
static void set_tag(struct viewer *viewer, const struct view *view)
{
    const struct image_shape *shape = &view->shape;

    (void)snprintf(viewer->tag, sizeof(viewer->tag), "\"%llx-%llx-%x.%x.%x.%x.%x-%llx\"",
                   (unsigned long long)viewer->service->started_at.ns,
                   (unsigned long long)view->frame->id, (unsigned)shape->rect[0],
                   (unsigned)shape->rect[1], (unsigned)shape->rect[2], (unsigned)shape->rect[3],
                   (unsigned)shape->width, (unsigned long long)view->boxes);
}

static void begin_image(struct viewer *viewer)
{
    const struct web_head *head = &web_exchange_request(viewer->exchange)->head;
    const char *known = web_header(head, "if-none-match");
    struct view view;

    if (!find_view(viewer, &view)) {
        refuse(viewer, 404,
               viewer->wanted.source == IMAGE_SNAPSHOT
                   ? "no snapshot of this camera has arrived yet"
                   : "no frame of this camera has arrived yet");
        return;
    }
    set_tag(viewer, &view);
    if (known != NULL && question_has_tag(known, viewer->tag)) {
        answer_image(viewer, NULL);
    } else {
        ask(viewer, &view);
    }
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* Sends the newest frame, if the viewer has not had it and can take it. */
static void show(struct viewer *viewer)
{
    struct view view;

    if (viewer->is_reading && viewer->awaited == NULL && find_view(viewer, &view) &&
        view.frame->id != viewer->number) {
        viewer->number = view.frame->id;
        ask(viewer, &view);
    }
}

static void begin_stream(struct viewer *viewer)
{
    struct web_exchange *exchange = viewer->exchange;

    if (viewer->service->streams > STREAMS_MAX) {
        refuse(viewer, 503, "too many look at streams; ask for an image, or again later");
        return;
    }
    if (web_exchange_request(exchange)->is_head) { /* the head is the whole answer */
        end_viewer(viewer);
    }
    web_begin(exchange,
              &(struct web_answer){.status = 200,
                                   .type = "multipart/x-mixed-replace; boundary=" BOUNDARY,
                                   .headers = "cache-control: no-store\r\n"});
}

/* ---- Both ------------------------------------------------------------------------------------ */

static const char *missing_source(const struct subscription *subscription, enum image_source source)
{
    if (subscription == NULL) {
        return "no such subscription";
    }
    if (source == IMAGE_STREAM && subscription->rtsp_url[0] == '\0') {
        return "this subscription has no stream: its rtspUrl is empty";
    }
    return source == IMAGE_SNAPSHOT && subscription->snapshot_url == NULL
               ? "this subscription has no snapshots: it names no snapshotUrl"
               : NULL;
}

void service_picture_begin(struct service *service, const struct camera_question *wanted,
                           struct web_exchange *exchange)
{
    const struct subscription *entry = worker_find(&service->worker, wanted->identifier);
    const char *missing = missing_source(entry, wanted->source);
    struct viewer *viewer = missing == NULL ? calloc(1, sizeof(*viewer)) : NULL;

    if (viewer == NULL) {
        web_refuse(exchange, missing != NULL ? 404 : 503,
                   missing != NULL ? missing : "out of memory");
        return;
    }
    viewer->service = service;
    viewer->exchange = exchange;
    viewer->images = (const struct images *)entry;
    viewer->wanted = *wanted;
    web_exchange_set(exchange, viewer);
    DL_APPEND(service->viewers, viewer);
    service->streams += wanted->is_stream;
    if (wanted->is_stream) {
        begin_stream(viewer);
    } else {
        begin_image(viewer);
    }
}

/* Only of a stream: the client has read all that was sent. */
void service_picture_drained(void *userdata, struct web_exchange *exchange)
{
    struct viewer *viewer = web_exchange_get(exchange);

    (void)userdata;
    if (viewer != NULL) {
        viewer->is_reading = true;
        show(viewer);
    }
}

void service_picture_gone(void *userdata, struct web_exchange *exchange)
{
    struct viewer *viewer = web_exchange_get(exchange);

    (void)userdata;
    if (viewer != NULL) {
        end_viewer(viewer);
    }
}

/* Any viewer may go meanwhile, so each is looked for anew. */
void service_picture_made(void *userdata, const struct encoding *encoding)
{
    const struct service *service = userdata;
    struct viewer *viewer;

    do {
        DL_SEARCH_SCALAR(service->viewers, viewer, awaited, encoding);
        if (viewer != NULL) {
            give(viewer, encoding);
        }
    } while (viewer != NULL);
}

void service_picture_frame(struct service *service, const struct images *images)
{
    struct viewer *viewer = NULL;

    DL_FOREACH (service->viewers, viewer) {
        if (viewer->is_reading && viewer->images == images) {
            show(viewer);
        }
    }
}

void service_picture_removed(struct service *service, const struct images *images)
{
    struct viewer *viewer = NULL, *next = NULL;

    DL_FOREACH_SAFE (service->viewers, viewer, next) {
        if (viewer->wanted.is_stream && viewer->images == images) {
            struct web_exchange *exchange = viewer->exchange;
            end_viewer(viewer);
            web_finish(exchange);
        }
    }
}
